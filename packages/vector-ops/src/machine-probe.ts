import { count, type NativeOptions, poolHandle, resolveIsa, type Weights, weightBytes } from '@k3/native-kit'
import { native } from './native.js'
import { supportedIsas } from './vector-ops.js'

// bytes a kernel takes at once
const STEP_BYTES = 256

/** Work that shows what a machine can do at most; the caller takes the time. Results of benchmarks are shares of that. */
export interface MachineProbe {
  /**
   * Binds a reading of `bytes` bytes, a multiple of 256, split over the threads: each call reads them once and returns
   * the sum of their 32-bit words modulo 2^32. `streams`: how many places, 1 (default) or 4, a thread reads at by turns;
   * which of the two is faster depends on the processor.
   * @throws RangeError (ERR_OUT_OF_RANGE), TypeError (ERR_INVALID_HANDLE)
   */
  reading(source: Weights, bytes: number, streams?: 1 | 4): () => number
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
    reading(source, bytes, streams = 1) {
      count('bytes', bytes, STEP_BYTES)
      count('bytes / 256', bytes / STEP_BYTES, 1)
      if (streams !== 1 && streams !== 4) throw notStreams(streams)
      const place = weightBytes('source', source, bytes)
      const reading = native().createReading(pool, isa, ...place, bytes, streams)
      return () => native().readAll(reading)
    },
    multiplyAdd(steps) {
      count('steps', steps, 1)
      return native().multiplyAdd(ops, steps)
    }
  }
}

const notStreams = (streams: unknown): RangeError =>
  Object.assign(new RangeError(`streams must be 1 or 4, got ${String(streams)}`), {
    code: 'ERR_OUT_OF_RANGE'
  })
