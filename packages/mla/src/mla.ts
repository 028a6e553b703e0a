import { atLeast, count, type NativeOptions, resolveIsa, type Weights, weightBytes } from '@k3/native-kit'
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
  /** bf16 [heads * (nopeDim + valueDim), latentDim], per head keys then values; used where it lies */
  readonly kvUp: Weights
}

/** One bound layer of gated multi-head latent attention, without its projections from and to the hidden width. */
export interface Mla {
  readonly shape: MlaShape
  /** An empty cache. */
  createCache(): MlaCache
  /**
   * Appends `tokens` rows to the cache and attends over all of it, causally. queries: f32 [tokens, heads, nopeDim +
   * sharedKeyDim]; kv: f32 [tokens, latentDim + sharedKeyDim] as projected; gate: f32 [tokens, heads * valueDim] before
   * the sigmoid; out: f32 [tokens, heads * valueDim], fully overwritten. Arrays may be longer. Any cut of a sequence
   * into calls gives the same bits, on every ISA and with any number of threads. Source: docs/spec/SPEC.md §7.
   * @throws RangeError (ERR_OUT_OF_RANGE) for a short array or another shape's cache, ERR_TASK_POOL_CLOSED
   */
  forward(
    queries: Float32Array,
    kv: Float32Array,
    gate: Float32Array,
    cache: MlaCache,
    out: Float32Array,
    tokens: number
  ): void
}

/**
 * Binds one layer; any sizes.
 * @throws RangeError when a parameter is too short, a size is not positive or the ISA is not available
 */
export const createMla = (shape: MlaShape, parameters: MlaParameters, options: NativeOptions = {}): Mla => {
  const { heads, nopeDim, sharedKeyDim, valueDim, latentDim, normEps } = shape
  checkShape(shape)
  atLeast('kvNorm', parameters.kvNorm, latentDim)
  const kvUpBytes = 2 * heads * (nopeDim + valueDim) * latentDim
  const [source, offset] = weightBytes('kvUp', parameters.kvUp, kvUpBytes)
  const isa = resolveIsa(options.isa, supportedIsas())
  const sizes = [heads, nopeDim, sharedKeyDim, valueDim, latentDim, normEps]
  const op = native().create(...sizes, parameters.kvNorm, source, offset, options.pool?.handle, isa)
  const rowLength = latentDim + sharedKeyDim
  const width = heads * valueDim
  return {
    shape,
    createCache: () => new MlaCache(rowLength, new Float32Array(0), 0),
    forward(queries, kv, gate, cache, out, tokens) {
      count('tokens', tokens, 0)
      atLeast('queries', queries, tokens * heads * (nopeDim + sharedKeyDim))
      atLeast('kv', kv, tokens * rowLength)
      atLeast('gate', gate, tokens * width)
      atLeast('out', out, tokens * width)
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
  if (!(normEps > 0 && Number.isFinite(normEps)))
    throw refuse(`normEps must be a positive number, got ${normEps}`)
}
