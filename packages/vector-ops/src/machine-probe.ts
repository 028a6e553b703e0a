import { count, type NativeOptions, poolHandle, resolveIsa, type Weights, weightBytes } from '@k3/native-kit'
import { native } from './native.js'
import { supportedIsas } from './vector-ops.js'

// bytes a kernel takes at once
const STEP_BYTES = 256

/** Work that shows what a machine can do at most; the caller takes the time. Results of benchmarks are shares of that. */
export interface MachineProbe {
  /**
   * Binds a reading of `bytes` bytes, a multiple of 256, split over the threads: each call reads them once and returns
   * the sum of their 32-bit words modulo 2^32.
   * @throws RangeError (ERR_OUT_OF_RANGE), TypeError (ERR_INVALID_HANDLE)
   */
  reading(source: Weights, bytes: number): () => number
  /**
   * Fused multiply-adds in registers, `steps` on every chain of every thread; returns how many numbers were multiplied
   * and added, a lane being one.
   */
  multiplyAdd(steps: number): number
}

/** @throws RangeError (ERR_ISA_UNSUPPORTED), TypeError (ERR_INVALID_HANDLE), ERR_NATIVE_LOAD */
export const createMachineProbe = (options: NativeOptions = {}): MachineProbe => {
  const isa = resolveIsa(options.isa, supportedIsas())
  const pool = poolHandle(options.pool)
  const ops = native().create(pool, isa)
  return {
    reading(source, bytes) {
      count('bytes', bytes, STEP_BYTES)
      count('bytes / 256', bytes / STEP_BYTES, 1)
      const reading = native().createReading(pool, isa, ...weightBytes('source', source, bytes), bytes)
      return () => native().readAll(reading)
    },
    multiplyAdd(steps) {
      count('steps', steps, 1)
      return native().multiplyAdd(ops, steps)
    }
  }
}
