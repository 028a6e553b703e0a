import { aboveZero, apart, atLeast, count, poolHandle, type Region, resolveIsa } from '@k3/native-kit'
import { type ProductOptions, resolveActivations } from './activations.js'
import { noMemory, rangeError } from './errors.js'
import { checkBatch, type ExpertBatch, largestIndex } from './expert-batch.js'
import { bindRegion, type ExpertLayout, expertBytes, scaleTensors } from './expert-layout.js'
import { native, supportedIsas } from './native.js'
import { refuseNan, wholeGroups } from './shape.js'

/** Widths of an expert, experts per token, the two caps of SiTU-GLU, and where an expert's tensors lie. */
export interface ExpertSpec {
  readonly latent: number
  readonly inner: number
  readonly topK: number
  readonly beta: number
  readonly linearBeta: number
  readonly layout: ExpertLayout
}

/** `limits`: the largest batch; its scratch is allocated at creation and never grows. Without it, it grows at need. */
export interface ExpertOptions extends ProductOptions {
  readonly limits?: { readonly tokens: number; readonly pairs: number }
}

/** The routed experts of a layer. */
export interface ExpertMlp {
  /**
   * out[p] = w2 situ(w1 z[t], w3 z[t]) with t = tokens[p] and the weights of p's expert, where situ(g, u) =
   * beta tanh(g / beta) sigmoid(g) linearBeta tanh(u / linearBeta). z: f32 [tokens, latent]; out: f32 [pairs, latent],
   * rows of the batch fully overwritten, others untouched; it must not overlap z.
   * @throws RangeError (ERR_OUT_OF_RANGE) for a short array, a base outside the region, a token outside z or a batch
   * beyond the limits, TypeError (ERR_INVALID_ARG_TYPE), ERR_TASK_POOL_CLOSED, ERR_MXFP4_MEMORY
   */
  apply(z: Float32Array, batch: ExpertBatch, out: Float32Array): void
  /**
   * out[t] = sum_i weights[t, i] pairs[pairOf[t, i]] in the order i = 0 .. topK - 1: a product, then fused
   * multiply-adds. pairs: f32 [pairs, latent]; pairOf: [tokens, topK]; weights: f32 [tokens, topK]; out: f32
   * [tokens, latent], fully overwritten; it must not overlap pairs.
   * @throws RangeError (ERR_OUT_OF_RANGE), TypeError (ERR_INVALID_ARG_TYPE), ERR_TASK_POOL_CLOSED
   */
  combine(
    pairs: Float32Array,
    pairOf: Int32Array,
    weights: Float32Array,
    out: Float32Array,
    tokens: number
  ): void
  /**
   * Looks through the scales of the expert at byte `base` for NaN. `apply` does not: call this once for each expert that
   * was read.
   * @throws ERR_MXFP4_SCALE_NAN with tensor ('w1', 'w2', 'w3'), row and group, RangeError (ERR_OUT_OF_RANGE)
   */
  validate(base: number): void
}

/**
 * An op for experts that lie in `region` (a memory region or a typed array, kept alive), multiplied straight from their
 * MXFP4 bytes. Two parallel passes for all experts of a batch, rows split over the pool; the scratch between them, 4
 * (tokens (latent + 143) + pairs (inner + 143)) + 16 pairs bytes at most, belongs to the op.
 * @throws ERR_MXFP4_SHAPE, ERR_MXFP4_ACTIVATIONS, ERR_MXFP4_MEMORY, RangeError (ERR_OUT_OF_RANGE,
 * ERR_ISA_UNSUPPORTED), TypeError (ERR_INVALID_HANDLE), ERR_NATIVE_LOAD
 */
export const createExpertMlp = (
  spec: ExpertSpec,
  region: Region | ArrayBufferView,
  options: ExpertOptions = {}
): ExpertMlp => {
  checkSpec(spec)
  const { latent, inner, topK, layout } = spec
  const { source, checkBase } = bindRegion(region, expertBytes(layout, latent, inner))
  const handle = bind(spec, source, options)
  const most = options.limits ?? { tokens: Infinity, pairs: Infinity }

  const apply = (z: Float32Array, batch: ExpertBatch, out: Float32Array) => {
    const { bases, starts, tokens } = batch
    const { rows, pairs } = checkBatch(batch, checkBase)
    if (rows > most.tokens || pairs > most.pairs) {
      throw rangeError(`a batch of ${rows} tokens and ${pairs} pairs is beyond the limits given at creation`)
    }
    atLeast('z', z, rows * latent)
    atLeast('out', out, starts[batch.count]! * latent)
    apart('z', z, rows * latent, out, starts[batch.count]! * latent)
    if (pairs === 0) return
    if (!native().applyExperts(handle, z, rows, batch.count, bases, starts, tokens, out))
      throw noMemory(`experts, ${pairs} pairs`)
  }

  const combine: ExpertMlp['combine'] = (pairs, pairOf, weights, out, tokens) => {
    count('tokens', tokens, 0)
    atLeast('weights', weights, tokens * topK)
    atLeast('out', out, tokens * latent)
    const rows = 1 + largestIndex('pairOf', pairOf, 0, tokens * topK)
    atLeast('pairs', pairs, rows * latent)
    apart('pairs', pairs, rows * latent, out, tokens * latent)
    native().combine(handle, pairs, pairOf, weights, out, tokens, topK)
  }

  const tensors = scaleTensors(layout, latent, inner)
  const validate = (base: number) => {
    checkBase(base)
    for (const { name, offset, rows, groups } of tensors) {
      refuseNan(name, [source[0], base + offset], rows, groups)
    }
  }
  return { apply, combine, validate }
}

const checkSpec = ({ latent, inner, topK, beta, linearBeta }: ExpertSpec): void => {
  wholeGroups('latent', latent)
  wholeGroups('inner', inner)
  count('topK', topK, 1)
  aboveZero('beta', beta)
  aboveZero('linearBeta', linearBeta)
}

const bind = (spec: ExpertSpec, source: [object, number], options: ExpertOptions): object => {
  const { pool, isa, limits } = options
  const { latent, inner, beta, linearBeta, layout } = spec
  const { w1Packed, w1Scale, w2Packed, w2Scale, w3Packed, w3Scale } = layout
  const handle = native().createExperts(
    ...source,
    Float64Array.of(latent, inner),
    Float64Array.of(beta, linearBeta),
    Float64Array.of(w1Packed, w1Scale, w2Packed, w2Scale, w3Packed, w3Scale),
    poolHandle(pool),
    resolveIsa(isa, supportedIsas()),
    resolveActivations(options)
  )
  if (limits !== undefined) {
    count('limits.tokens', limits.tokens, 1)
    count('limits.pairs', limits.pairs, 1)
    const numbers = limits.tokens * (latent + 143) + limits.pairs * (inner + 143)
    const sane = 4 * numbers + 16 * limits.pairs <= Number.MAX_SAFE_INTEGER
    if (!sane || !native().reserveExperts(handle, limits.tokens, limits.pairs)) throw noMemory('limits')
  }
  return handle
}
