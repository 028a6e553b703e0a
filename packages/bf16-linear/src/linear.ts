import {
  apart,
  atLeast,
  count,
  type Isa,
  type NativeOptions,
  poolHandle,
  resolveIsa,
  type Weights,
  weightBytes
} from '@k3/native-kit'
import { native } from './native.js'

/** A bf16 matrix [rows, cols], row-major, little-endian, at any alignment. */
export interface LinearSpec {
  readonly weights: Weights
  readonly rows: number
  readonly cols: number
}

/** A bound bf16 matrix. */
export interface Linear {
  readonly rows: number
  readonly cols: number
  /** The native handle, for `createLinearGroup`. */
  readonly handle: object
  /**
   * out[t] = W x[t] for `tokens` columns. x: f32 [tokens, cols]; out: f32 [tokens, rows], fully overwritten. Both may be
   * longer than that. The same (row, token) pair has the same bits for every number of tokens, threads and every ISA.
   * @throws TypeError (ERR_INVALID_ARG_TYPE) for another kind of array; RangeError (ERR_OUT_OF_RANGE) for a short one or
   * when out overlaps x; ERR_TASK_POOL_CLOSED when the pool was closed; ERR_WEIGHTS_DETACHED when the buffer of a weights
   * array was transferred away
   */
  apply(x: Float32Array, out: Float32Array, tokens: number): void
}

/** Instruction sets this process can run, slowest first. */
export const supportedIsas = (): readonly Isa[] => native().isas()

/**
 * Binds bf16 weights once; nothing is copied or converted. A region or an array stays alive as long as the linear does.
 * @throws RangeError (ERR_OUT_OF_RANGE) when the weights are too short or in a resizable buffer, rows is negative or cols
 * not positive; RangeError (ERR_ISA_UNSUPPORTED); TypeError (ERR_INVALID_HANDLE) for a foreign pool or region,
 * (ERR_INVALID_ARG_TYPE) for weights that are neither an array nor in a region; ERR_NATIVE_LOAD when there is no binary for this platform
 */
export const createLinear = ({ weights, rows, cols }: LinearSpec, options: NativeOptions = {}): Linear => {
  count('rows', rows, 0)
  count('cols', cols, 1)
  const [source, offset] = weightBytes('weights', weights, 2 * rows * cols)
  const isa = resolveIsa(options.isa, supportedIsas())
  const handle = native().create(source, offset, rows, cols, poolHandle(options.pool), isa)
  const apply = (x: Float32Array, out: Float32Array, tokens: number) => {
    count('tokens', tokens, 0)
    atLeast('x', x, tokens * cols)
    atLeast('out', out, tokens * rows)
    apart('x', x, tokens * cols, out, tokens * rows)
    native().apply(handle, x, out, tokens)
  }
  return { rows, cols, handle, apply }
}
