import {
  aboveZero,
  apart,
  atLeast,
  count,
  exactly,
  type NativeOptions,
  poolHandle,
  resolveIsa,
  type Weights,
  weightBytes
} from '@k3/native-kit'
import { MlaCache } from './cache.js'
import { native, supportedIsas } from './native.js'

/** Sizes and constants of a layer. */
export interface MlaShape {
  readonly heads: number
  /** Query and key channels each head has for itself. */
  readonly nopeDim: number
  /** Key channels all heads share, kept raw (the "rope" part of other models; Kimi-K3 rotates nothing). */
  readonly sharedKeyDim: number
  readonly valueDim: number
  readonly latentDim: number
  /** Epsilon of the latent's RMSNorm; 1e-6 in Kimi-K3, unlike its other norms. */
  readonly normEps: number
}

/** Parameters of a layer. */
export interface MlaParameters {
  /** f32 [latentDim], copied */
  readonly kvNorm: Float32Array
  /** bf16 [heads * (nopeDim + valueDim), latentDim], per head keys then values, any alignment; used where it lies */
  readonly kvUp: Weights
}

/** Projections of the tokens, f32. Nothing of it is written. */
export interface MlaInputs {
  /** [tokens, heads, nopeDim + sharedKeyDim] */
  readonly queries: Float32Array
  /** [tokens, latentDim + sharedKeyDim], as projected: the norm is applied here */
  readonly kv: Float32Array
  /** [tokens, heads * valueDim], before the sigmoid */
  readonly gate: Float32Array
}

/** One bound layer of gated multi-head latent attention, without its projections from and to the hidden width. */
export interface Mla {
  readonly shape: MlaShape
  /** An empty cache; it grows by 4 (latentDim + sharedKeyDim) bytes a token. */
  createCache(): MlaCache
  /**
   * Appends `tokens` rows to the cache and attends over all of it, causally. out: f32 [tokens, heads * valueDim], fully
   * overwritten. Inputs and out may be longer. Any cut of a sequence into calls gives the same bits, on every ISA and with
   * any number of threads. NaN goes into out and the cache. A call that throws leaves the cache's rows as they were.
   * Source: docs/spec/SPEC.md §7.
   * @throws TypeError (ERR_INVALID_ARG_TYPE) for another kind of array; RangeError (ERR_OUT_OF_RANGE) for a short one,
   * another shape's cache, or when out overlaps an input; ERR_TASK_POOL_CLOSED when the pool was closed;
   * ERR_WEIGHTS_DETACHED when the buffer of a weights array was transferred away; ERR_OUT_OF_MEMORY
   */
  forward(inputs: MlaInputs, cache: MlaCache, out: Float32Array, tokens: number): void
}

/**
 * Binds one layer; any sizes. The region or the array of kvUp stays alive as long as the op does.
 * @throws RangeError (ERR_OUT_OF_RANGE) when a parameter has another length or a size is not positive; RangeError
 * (ERR_ISA_UNSUPPORTED); TypeError (ERR_INVALID_ARG_TYPE, ERR_INVALID_HANDLE); ERR_NATIVE_LOAD when there is no binary for
 * this platform
 */
export const createMla = (shape: MlaShape, parameters: MlaParameters, options: NativeOptions = {}): Mla => {
  const { heads, nopeDim, sharedKeyDim, valueDim, latentDim, normEps } = shape
  checkShape(shape)
  exactly('kvNorm', parameters.kvNorm, latentDim)
  const kvUpBytes = 2 * heads * (nopeDim + valueDim) * latentDim
  const [source, offset] = weightBytes('kvUp', parameters.kvUp, kvUpBytes)
  const isa = resolveIsa(options.isa, supportedIsas())
  const sizes = [heads, nopeDim, sharedKeyDim, valueDim, latentDim, normEps]
  const op = native().create(...sizes, parameters.kvNorm, source, offset, poolHandle(options.pool), isa)
  const rowLength = latentDim + sharedKeyDim
  const width = heads * valueDim
  const queryWidth = heads * (nopeDim + sharedKeyDim)
  return {
    shape,
    createCache: () => new MlaCache(rowLength, new Float32Array(0), 0),
    forward({ queries, kv, gate }, cache, out, tokens) {
      count('tokens', tokens, 0)
      atLeast('out', out, tokens * width)
      const check = (name: string, input: Float32Array, rowWidth: number) => {
        atLeast(name, input, tokens * rowWidth)
        apart(name, input, tokens * rowWidth, out, tokens * width)
      }
      check('queries', queries, queryWidth)
      check('kv', kv, rowLength)
      check('gate', gate, width)
      if (cache.rowLength !== rowLength)
        throw refuse(`the cache has rows of ${cache.rowLength}, this layer of ${rowLength}`)
      cache.reserve(tokens)
      native().forward(op, queries, kv, gate, cache.rows, cache.length, out, tokens)
      cache.advance(tokens)
    }
  }
}

const refuse = (message: string) => Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' })

const checkShape = ({ heads, nopeDim, sharedKeyDim, valueDim, latentDim, normEps }: MlaShape): void => {
  count('heads', heads, 1)
  count('nopeDim', nopeDim, 1)
  count('sharedKeyDim', sharedKeyDim, 0)
  count('valueDim', valueDim, 1)
  count('latentDim', latentDim, 1)
  aboveZero('normEps', normEps)
}
