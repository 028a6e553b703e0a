import { apart, atLeast, count, poolHandle, resolveIsa, type Weights, weightBytes } from '@k3/native-kit'
import { type ProductOptions, resolveActivations } from './activations.js'
import { noMemory } from './errors.js'
import { native, supportedIsas } from './native.js'
import { checkShape, groupSize, refuseNan, type Shape } from './shape.js'

/** packed: U8 [rows, cols / 2]; scales: U8 [rows, cols / 32]; both at any alignment. */
export interface MatrixSpec extends Shape {
  readonly packed: Weights
  readonly scales: Weights
}

/** A bound MXFP4 matrix. */
export interface Matrix {
  readonly rows: number
  readonly cols: number
  /**
   * out[t] = W x[t]. x: f32 [tokens, cols]; out: f32 [tokens, rows], fully overwritten; both may be longer; they must
   * not overlap. A (row, token) pair has the same bits for every number of tokens and threads and on every ISA, with
   * exact as with int8 activations; 32 inputs with NaN or infinity among them give NaN with int8.
   * @throws TypeError (ERR_INVALID_ARG_TYPE), RangeError (ERR_OUT_OF_RANGE) for a short or overlapping array,
   * ERR_TASK_POOL_CLOSED when the pool was closed, ERR_WEIGHTS_DETACHED when a buffer of the weights was transferred
   * away, ERR_MXFP4_MEMORY when there is no memory for 4 (cols + 143) bytes a token (64 tokens at most)
   */
  apply(x: Float32Array, out: Float32Array, tokens: number): void
}

/**
 * Binds the bytes of an MXFP4 matrix; nothing is copied or rearranged. A region or an array stays alive as long as the
 * matrix does. The scales are looked through once for NaN.
 * @throws ERR_MXFP4_SCALE_NAN, ERR_MXFP4_SHAPE, ERR_MXFP4_LAYOUT, ERR_MXFP4_ACTIVATIONS, RangeError (ERR_OUT_OF_RANGE,
 * ERR_ISA_UNSUPPORTED), TypeError (ERR_INVALID_HANDLE), ERR_NATIVE_LOAD
 */
export const createMatrix = (spec: MatrixSpec, options: ProductOptions = {}): Matrix => {
  checkShape(spec)
  const { rows, cols } = spec
  const codes = weightBytes('packed', spec.packed, (rows * cols) / 2)
  const scales = weightBytes('scales', spec.scales, (rows * cols) / groupSize)
  refuseNan('scales', scales, rows, cols / groupSize)
  const isa = resolveIsa(options.isa, supportedIsas())
  const activations = resolveActivations(options)
  const pool = poolHandle(options.pool)
  const handle = native().createMatrix(...codes, ...scales, rows, cols, pool, isa, activations)
  const apply = (x: Float32Array, out: Float32Array, tokens: number) => {
    count('tokens', tokens, 0)
    atLeast('x', x, tokens * cols)
    atLeast('out', out, tokens * rows)
    apart('x', x, tokens * cols, out, tokens * rows)
    if (!native().applyMatrix(handle, x, out, tokens)) throw noMemory('matrix')
  }
  return { rows, cols, apply }
}
