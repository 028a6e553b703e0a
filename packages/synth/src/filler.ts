import { type Isa, type NativeOptions, poolHandle, resolveIsa } from '@k3/native-kit'
import type { Geometry } from './geometry.js'
import { native } from './native.js'
import { ruleFor } from './rules.js'
import { streamOf } from './stream.js'

/** A tensor as a checkpoint lists it. */
export interface SynthTensor {
  readonly name: string
  readonly dtype: 'F32' | 'BF16' | 'U8'
  readonly shape: readonly number[]
}

/** Writes the bytes of one model's tensors, in any pieces and in any order. */
export interface Filler {
  /**
   * Bytes `firstByte` and on of a tensor, as many as `out` holds.
   * @param firstByte a multiple of 4
   * @param out u8, any alignment, fully overwritten
   * @throws ERR_SYNTH_TENSOR for a name the formula does not cover, RangeError (ERR_OUT_OF_RANGE) for an odd place,
   * ERR_TASK_POOL_CLOSED when the pool was closed
   */
  fill(tensor: SynthTensor, firstByte: number, out: Uint8Array): void
}

/** Instruction sets this process can run, slowest first. */
export const supportedIsas = (): readonly Isa[] => native().isas()

const SEEDS = 1n << 64n

/**
 * Binds geometry and seed; every ISA and number of threads gives the same bytes.
 * @param seed an integer from 0 to 2^64 - 1
 * @throws RangeError (ERR_OUT_OF_RANGE) for another seed, ERR_ISA_UNSUPPORTED, ERR_NATIVE_LOAD
 */
export function createFiller(geometry: Geometry, seed: bigint, options: NativeOptions = {}): Filler {
  if (seed < 0n || seed >= SEEDS) throw outOfRange(`seed must lie between 0 and 2^64 - 1, got ${seed}`)
  const handle = native().create(poolHandle(options.pool), resolveIsa(options.isa, supportedIsas()))
  // a tensor is usually filled in several pieces, one after the other
  let last: { readonly tensor: SynthTensor; readonly parameters: Float64Array } | undefined
  const parametersOf = (tensor: SynthTensor): Float64Array => {
    if (last?.tensor !== tensor) {
      const { name, dtype, shape } = tensor
      const s = streamOf(seed, name, dtype, ruleFor(name, shape, geometry))
      last = { tensor, parameters: Float64Array.of(s.k0, s.k1, s.kind, s.offset, s.slope, s.unit, s.live) }
    }
    return last.parameters
  }
  const fill = (tensor: SynthTensor, firstByte: number, out: Uint8Array): void => {
    if (!Number.isSafeInteger(firstByte) || firstByte < 0 || firstByte % 4 !== 0) {
      throw outOfRange(`firstByte must be a multiple of 4, got ${firstByte}`)
    }
    native().fill(handle, parametersOf(tensor), firstByte / 4, out)
  }
  return { fill }
}

const outOfRange = (message: string): RangeError =>
  Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' })
