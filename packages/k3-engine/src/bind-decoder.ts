import { createVectorOps, foldKeyWeight } from '@k3/vector-ops'
import type { K3Config } from './config.js'
import { Decoder } from './decoder.js'
import type { DecoderLayer, LayerNorms } from './decoder-layer.js'
import { DenseMlp } from './dense-mlp.js'
import type { ExpertMlps } from './expert-mlps.js'
import { ExpertPredictor, type PredictorParts } from './expert-predictor.js'
import type { ExpertSource, Layer, WeightSource } from './interfaces.js'
import { KdaLayer } from './kda-layer.js'
import { LatentMoe } from './latent-moe.js'
import type { LayerParts, NativeChoice } from './layer-parts.js'
import type { LayerPlan } from './layer-plan.js'
import { MlaLayer } from './mla-layer.js'
import type { CustomParts } from './model-options.js'
import { Scratch } from './scratch.js'
import { type OnSpan, unwatched, watchLayer } from './spans.js'
import { layerTensorName } from './tensor-names.js'
import type { Trunk } from './trunk.js'
import { HEAD } from './trunk-segments.js'

/** What the decoder is made from. */
export interface DecoderSources {
  readonly trunk: Trunk
  /** What layers and head are bound to: the trunk, or what a caller made of it. */
  readonly weights: WeightSource
  /** Null when no layer has experts. */
  readonly experts: ExpertSource | null
  readonly mlps: ExpertMlps
  readonly native: NativeChoice
  readonly chunkTokens: number
  /** Wraps or replaces a half of a layer; null for the layers as they are. */
  readonly wrap: NonNullable<CustomParts['layer']> | null
  /** Null when nothing is read ahead of the router. */
  readonly lookahead: Pick<PredictorParts, 'count' | 'expect'> | null
  /** Null when nobody watches. */
  readonly onSpan: OnSpan | null
}

/** Binds every weight of the checkpoint to the op that uses it. */
export const bindDecoder = (
  config: K3Config,
  plan: readonly LayerPlan[],
  sources: DecoderSources
): Decoder => {
  const { weights, native, mlps, experts, onSpan } = sources
  const ops = createVectorOps(native)
  const scratch = new Scratch(sources.chunkTokens)
  const watchOf = (layer: number | null) => (onSpan === null ? unwatched : watchLayer(onSpan, layer))
  const parts = (layer: number): LayerParts => ({
    config,
    weights,
    ops,
    scratch,
    native,
    watch: watchOf(layer)
  })
  const watch = watchOf(null)
  if (experts !== null) mlps.bind(experts.region)
  const layers = plan.map((row) => bindLayer(row, parts(row.index), sources))
  const { trunk, lookahead } = sources
  const norms = layers.map((layer) => layer.norms)
  const predictor =
    lookahead === null
      ? null
      : new ExpertPredictor({ config, plan, norms, ops, weights, trunk, ...lookahead })
  return new Decoder({
    config,
    ops: watch(ops, { residualMix: 'head.mix', rmsNorm: 'head.norm' }),
    scratch,
    layers,
    trunk: watch(trunk, { embed: 'embed.rows', enter: 'trunk.wait' }),
    predictor: predictor === null ? null : watch(predictor, { predict: 'lookahead.predict' }),
    finalMix: mixKey(weights, 'language_model.model.output_attn_res'),
    finalNorm: weights.vector('language_model.model.norm.weight'),
    head: watch(weights.linears([HEAD]), { apply: 'head.logits' })
  })
}

const STREAM_SPANS = { residualMix: 'residual.mix', rmsNorm: 'residual.norm', add: 'residual.add' }

const bindLayer = (
  plan: LayerPlan,
  parts: LayerParts,
  { wrap, experts, mlps }: DecoderSources
): DecoderLayer => {
  const { index } = plan
  const mixer: Layer = plan.mixer === 'kda' ? new KdaLayer(index, parts) : new MlaLayer(index, parts)
  const ffn: Layer =
    plan.ffn === 'dense' ? new DenseMlp(index, parts) : new LatentMoe(index, parts, experts!, mlps.of(index))
  return {
    plan,
    norms: layerNorms(index, parts.weights),
    ops: parts.watch(parts.ops, STREAM_SPANS),
    mixer: wrap === null ? mixer : wrap(mixer, plan, 'mixer'),
    ffn: wrap === null ? ffn : wrap(ffn, plan, 'ffn')
  }
}

const layerNorms = (index: number, weights: WeightSource): LayerNorms => ({
  mixerMix: mixKey(weights, layerTensorName(index, 'self_attention_res')),
  mixerNorm: weights.vector(layerTensorName(index, 'input_layernorm.weight')),
  ffnMix: mixKey(weights, layerTensorName(index, 'mlp_res')),
  ffnNorm: weights.vector(layerTensorName(index, 'post_attention_layernorm.weight'))
})

const mixKey = (weights: WeightSource, name: string): Float32Array =>
  foldKeyWeight(weights.vector(`${name}_norm.weight`), weights.vector(`${name}_proj.weight`))
