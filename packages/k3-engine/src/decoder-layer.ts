import type { VectorOps } from '@k3/vector-ops'
import type { Layer, LayerState } from './interfaces.js'
import type { LayerPlan } from './layer-plan.js'
import type { ResidualStream } from './residual-stream.js'

/** Gain of a norm, and the folded key weight of a residual mix, f32 [hidden] each. */
export interface LayerNorms {
  readonly mixerMix: Float32Array
  readonly mixerNorm: Float32Array
  readonly ffnMix: Float32Array
  readonly ffnNorm: Float32Array
}

/** One decoder layer, bound. */
export interface DecoderLayer {
  readonly plan: LayerPlan
  readonly norms: LayerNorms
  readonly ops: VectorOps
  readonly mixer: Layer
  readonly ffn: Layer
}

/** Rows the layers of a model share, f32 [tokens, hidden] each. */
export interface LayerRows {
  readonly mixed: Float32Array
  readonly delta: Float32Array
}

/**
 * One layer over `stream.tokens` tokens: mix, norm, mixer, mix, norm, feed-forward (docs/spec/SPEC.md §5). The mixed
 * vector only feeds the norm; what runs from layer to layer is the stream's prefix.
 */
export const forwardLayer = (
  { plan, norms, ops, mixer, ffn }: DecoderLayer,
  state: LayerState | null,
  stream: ResidualStream,
  { mixed, delta }: LayerRows
): void => {
  const { tokens, eps } = stream
  const length = tokens * stream.width
  if (stream.blockCount === 0) mixed.set(stream.prefix.subarray(0, length))
  else ops.residualMix(stream.sources(), norms.mixerMix, eps, mixed, tokens)
  if (plan.startsBlock) stream.pushBlock()
  ops.rmsNorm(mixed, norms.mixerNorm, eps, mixed, tokens)
  mixer.forward(mixed, state, delta, tokens)
  stream.accumulate(delta, ops)

  ops.residualMix(stream.sources(), norms.ffnMix, eps, mixed, tokens)
  ops.rmsNorm(mixed, norms.ffnNorm, eps, mixed, tokens)
  ffn.forward(mixed, null, delta, tokens)
  stream.accumulate(delta, ops)
}
