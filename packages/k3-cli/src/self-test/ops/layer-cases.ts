import {
  type DecoderLayer,
  DenseMlp,
  forwardLayer,
  KdaLayer,
  type LayerParts,
  MlaLayer,
  ResidualStream
} from '@k3/engine/layers'
import { MlaCache } from '@k3/mla'
import { foldKeyWeight } from '@k3/vector-ops'
import { goldenMoe, goldenParts } from './golden-model.js'
import { cutsOf, dimension, type OpCase, poisoned, positionsOf, type RunOp } from './op-case.js'

type Outputs = Map<string, Float32Array | Int32Array>

/** Calls `piece` for the tokens [first, end) of each piece of a cut. */
const inPieces = (cuts: readonly number[], piece: (first: number, end: number) => void): void => {
  let first = 0
  for (const end of cuts) {
    piece(first, end)
    first = end
  }
}

const inputRows = ({ golden }: OpCase, name: string) => {
  const rows = golden.f32(name)
  const width = golden.size(name, -1)
  return { rows, width, tokens: rows.length / width }
}

const kdaLayer: RunOp = (one, native) => {
  const { rows: x, width, tokens } = inputRows(one, 'x')
  const layer = new KdaLayer(dimension(one, 'layer'), goldenParts(one, native, tokens))
  const places = positionsOf(one, 'out.S_after')
  return cutsOf(tokens, places).map((cuts) => {
    const state = layer.createState()
    const y = poisoned(x.length)
    const outputs: Outputs = new Map([['out.y', y]])
    inPieces(cuts, (first, end) => {
      layer.forward(x.subarray(first * width), state, y.subarray(first * width), end - first)
      if (!places.includes(end)) return
      outputs.set(`out.S_after_${end}`, state.recurrence.slice())
      const tail = state.tails.length / 3
      ;['q', 'k', 'v'].forEach((name, i) => {
        outputs.set(`out.${name}_tail_after_${end}`, state.tails.slice(i * tail, (i + 1) * tail))
      })
    })
    return outputs
  })
}

const mlaLayer: RunOp = (one, native) => {
  const { rows: x, width, tokens } = inputRows(one, 'x')
  const parts = goldenParts(one, native, tokens)
  const layer = new MlaLayer(dimension(one, 'layer'), parts)
  const { latentRank, sharedKeyDim } = parts.config.mla
  return cutsOf(tokens, [5]).map((cuts) => {
    const outputs: Outputs = new Map()
    for (const cached of positionsOf(one, 'out.y_cache')) {
      const cache = cached === 0 ? layer.createState() : filledCache(one, cached)
      const y = poisoned(x.length)
      outputs.set(`out.y_cache_${cached}`, y)
      inPieces(cuts, (first, end) => {
        layer.forward(x.subarray(first * width), cache, y.subarray(first * width), end - first)
      })
      if (cached > 0) continue
      outputs.set('out.new_latent', columns(cache, 0, latentRank))
      outputs.set('out.new_rope', columns(cache, latentRank, sharedKeyDim))
    }
    return outputs
  })
}

/** A cache of the first `length` rows of the golden's: the normed latent, then the shared key part. */
const filledCache = ({ golden }: OpCase, length: number): MlaCache => {
  const [latent, rope] = [golden.f32('cache_latent'), golden.f32('cache_rope')]
  const [latentDim, ropeDim] = [golden.size('cache_latent', -1), golden.size('cache_rope', -1)]
  const rows = new Float32Array(length * (latentDim + ropeDim))
  for (let t = 0; t < length; t++) {
    const at = t * (latentDim + ropeDim)
    rows.set(latent.subarray(t * latentDim, (t + 1) * latentDim), at)
    rows.set(rope.subarray(t * ropeDim, (t + 1) * ropeDim), at + latentDim)
  }
  return new MlaCache(latentDim + ropeDim, rows, length)
}

const columns = ({ rows, rowLength, length }: MlaCache, from: number, count: number): Float32Array => {
  const out = new Float32Array(length * count)
  for (let t = 0; t < length; t++) {
    out.set(rows.subarray(t * rowLength + from, t * rowLength + from + count), t * count)
  }
  return out
}

/** All tokens at once, with room for all experts and for those of one token only, and the tokens one by one. */
const latentMoe: RunOp = (one, native) => {
  const { rows: x, width, tokens } = inputRows(one, 'x')
  const parts = goldenParts(one, native, tokens)
  const { expertCount, topK } = parts.config.moe
  const whole = [tokens]
  const single = Array.from({ length: tokens }, (_, i) => i + 1)
  const ways = [
    { slots: expertCount, cuts: whole },
    { slots: topK, cuts: whole },
    { slots: topK, cuts: single }
  ]
  return ways.map(({ slots, cuts }) => {
    const moe = goldenMoe(one, parts, slots)
    const y = poisoned(x.length)
    const index = new Int32Array(tokens * topK).fill(-1)
    const weight = poisoned(tokens * topK)
    inPieces(cuts, (first, end) => {
      moe.forward(x.subarray(first * width), null, y.subarray(first * width), end - first)
      const choices = (end - first) * topK
      index.set(moe.routing.chosen.subarray(0, choices), first * topK)
      weight.set(moe.routing.weights.subarray(0, choices), first * topK)
    })
    return new Map<string, Float32Array | Int32Array>([
      ['out.y', y],
      ['out.index', index],
      ['out.weight', weight]
    ])
  })
}

const decoderLayer: RunOp = (one, native) => {
  const { rows: prefix, width, tokens } = inputRows(one, 'prefix')
  const parts = goldenParts(one, native, tokens)
  const layer = bindLayer(one, parts)
  const blocks = Array.from({ length: dimension(one, 'blocks') }, (_, b) => one.golden.f32(`block_${b}`))
  return cutsOf(tokens, [1, 3]).map((cuts) => {
    const state = layer.mixer.createState()
    const stream = new ResidualStream(parts.config, tokens)
    const rows = { mixed: poisoned(prefix.length), delta: poisoned(prefix.length) }
    const out = poisoned(prefix.length)
    inPieces(cuts, (first, end) => {
      const part = (all: Float32Array) => all.subarray(first * width, end * width)
      enter(stream, blocks.map(part), part(prefix), parts)
      forwardLayer(layer, state, stream, rows)
      out.set(stream.prefix.subarray(0, (end - first) * width), first * width)
    })
    return new Map([['out.prefix', out]])
  })
}

/** Puts the stream where it is before a layer: the finished blocks, then the running prefix. */
const enter = (
  stream: ResidualStream,
  blocks: readonly Float32Array[],
  prefix: Float32Array,
  { ops }: LayerParts
): void => {
  stream.restart(prefix.length / stream.width)
  for (const block of blocks) {
    stream.prefix.set(block)
    stream.pushBlock()
  }
  if (blocks.length === 0) stream.prefix.set(prefix)
  else stream.accumulate(prefix, ops)
}

const bindLayer = (one: OpCase, parts: LayerParts): DecoderLayer => {
  const { config, weights } = parts
  const index = dimension(one, 'layer')
  const name = (suffix: string) => `language_model.model.layers.${index}.${suffix}.weight`
  const mix = (stem: string) =>
    foldKeyWeight(weights.vector(name(`${stem}_norm`)), weights.vector(name(`${stem}_proj`)))
  const isMla = config.mla.layers.includes(index)
  return {
    plan: {
      index,
      mixer: isMla ? 'mla' : 'kda',
      ffn: index === 0 ? 'dense' : 'moe',
      startsBlock: index % config.residualBlockSize === 0
    },
    norms: {
      mixerMix: mix('self_attention_res'),
      mixerNorm: weights.vector(name('input_layernorm')),
      ffnMix: mix('mlp_res'),
      ffnNorm: weights.vector(name('post_attention_layernorm'))
    },
    ops: parts.ops,
    mixer: isMla ? new MlaLayer(index, parts) : new KdaLayer(index, parts),
    ffn: index === 0 ? new DenseMlp(index, parts) : goldenMoe(one, parts, config.moe.topK)
  }
}

/** Runners of whole layers and of their halves, through the engine's own classes. */
export const layerCases: Readonly<Record<string, RunOp>> = {
  kda_layer: kdaLayer,
  mla_layer: mlaLayer,
  latent_moe: latentMoe,
  decoder_layer: decoderLayer
}
