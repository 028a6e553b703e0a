import type { VectorOps } from '@k3/vector-ops'
import type { K3Config } from './config.js'
import { type DecoderLayer, forwardLayer, type LayerRows } from './decoder-layer.js'
import type { ExpertPredictor } from './expert-predictor.js'
import type { LayerState, Linears } from './interfaces.js'
import { ResidualStream } from './residual-stream.js'
import type { Scratch } from './scratch.js'
import type { Trunk } from './trunk.js'

/** The bound parts of a decoder. */
export interface DecoderParts {
  readonly config: K3Config
  readonly ops: VectorOps
  readonly scratch: Scratch
  readonly layers: readonly DecoderLayer[]
  readonly trunk: Trunk
  /** Null when nothing is read ahead of the router. */
  readonly predictor: ExpertPredictor | null
  readonly finalMix: Float32Array
  readonly finalNorm: Float32Array
  readonly head: Linears
}

/** Called after each layer of a chunk; a promise it returns is awaited before the next layer. */
export type AfterLayer = (layer: number, decoder: Decoder) => Promise<void> | undefined

/** Embed, run the layers over one chunk of tokens, final mix and norm, logits (docs/spec/SPEC.md §3). */
export class Decoder {
  readonly stream: ResidualStream
  readonly parts: DecoderParts
  readonly #rows: LayerRows

  constructor(parts: DecoderParts) {
    const { config, scratch } = parts
    this.parts = parts
    this.stream = new ResidualStream(config, scratch.maxTokens)
    this.#rows = {
      mixed: scratch.rows('residual', config.hiddenSize),
      delta: scratch.rows('delta', config.hiddenSize)
    }
  }

  /**
   * Advances the states by a chunk of at most `scratch.maxTokens` ids; the result stays in the stream's prefix.
   * `withLogits`: `logits` will be called after it.
   */
  async advance(
    ids: ArrayLike<number>,
    states: readonly (LayerState | null)[],
    withLogits: boolean,
    after: AfterLayer
  ): Promise<void> {
    const { layers, trunk, predictor } = this.parts
    trunk.begin(withLogits)
    trunk.embed(ids, this.stream.prefix)
    this.stream.restart(ids.length)
    for (let i = 0; i < layers.length; i++) {
      trunk.enter(i)
      forwardLayer(layers[i]!, states[i]!, this.stream, this.#rows)
      predictor?.predict(i + 1, this.stream)
      const pause = after(i, this)
      if (pause !== undefined) await pause
    }
    if (!withLogits) trunk.end()
  }

  /** Logits of the last `count` tokens of the chunk that was advanced. out: f32 [count, vocab] */
  logits(count: number, out: Float32Array): void {
    const { finalMix, finalNorm, head, ops, trunk } = this.parts
    const { tokens, width, eps } = this.stream
    const { mixed } = this.#rows
    ops.residualMix(this.stream.sources(), finalMix, eps, mixed, tokens)
    ops.rmsNorm(mixed, finalNorm, eps, mixed, tokens)
    trunk.enter(null)
    head.apply(count === tokens ? mixed : mixed.subarray((tokens - count) * width), [out], count)
    trunk.end()
  }
}
