import type { Router, VectorOps } from '@k3/vector-ops'
import { VectorOpsError } from '@k3/vector-ops'
import type { K3Config } from './config.js'
import type { LayerNorms } from './decoder-layer.js'
import type { Linears, WeightSource } from './interfaces.js'
import type { LayerPlan } from './layer-plan.js'
import type { ResidualStream } from './residual-stream.js'
import { layerTensorName } from './tensor-names.js'
import type { Trunk } from './trunk.js'

/** What predictions are made from, and who is told. */
export interface PredictorParts {
  readonly config: K3Config
  readonly plan: readonly LayerPlan[]
  readonly norms: readonly LayerNorms[]
  readonly ops: VectorOps
  readonly weights: WeightSource
  readonly trunk: Trunk
  /** Experts to predict for a layer. */
  readonly count: number
  /** Gets the ids, likeliest first; the array is used again. */
  readonly expect: (layer: number, ids: Int32Array) => void
}

/**
 * Guesses which experts the next layer will choose: its router is run on the hidden state as it is before that layer's
 * attention. Only for single tokens, whose reads the drive could begin earlier; a chunk of many keeps it busy as it is.
 */
export class ExpertPredictor {
  readonly #parts: PredictorParts
  readonly #gates: readonly (Linears | null)[]
  readonly #routers: readonly (Router | null)[]
  readonly #mixed: Float32Array
  readonly #logits: Float32Array
  readonly #ids: Int32Array
  readonly #weights: Float32Array

  constructor(parts: PredictorParts) {
    const { config, plan, ops, weights, count } = parts
    const { renormalize, routedScale, expertCount } = config.moe
    const gateName = (layer: number, suffix: string) =>
      layerTensorName(layer, `block_sparse_moe.gate.${suffix}`)
    this.#parts = parts
    this.#gates = plan.map(({ index, ffn }) =>
      ffn === 'moe' ? weights.linears([gateName(index, 'weight')]) : null
    )
    this.#routers = plan.map(({ index, ffn }) => {
      if (ffn !== 'moe') return null
      const bias = weights.vector(gateName(index, 'e_score_correction_bias'))
      return ops.createRouter({ bias, k: count, renormalize, scalingFactor: routedScale })
    })
    this.#mixed = new Float32Array(config.hiddenSize)
    this.#logits = new Float32Array(expertCount)
    this.#ids = new Int32Array(count)
    this.#weights = new Float32Array(count)
  }

  /** Predicts for `layer`, which runs next, if it has experts and its router is in memory. */
  predict(layer: number, stream: ResidualStream): void {
    const { norms, ops, trunk, expect } = this.#parts
    const gate = this.#gates[layer]
    const router = this.#routers[layer]
    if (gate == null || router == null || stream.tokens > 1 || !trunk.has(layer)) return
    const { ffnMix, ffnNorm } = norms[layer]!
    ops.residualMix(stream.sources(), ffnMix, stream.eps, this.#mixed, 1)
    ops.rmsNorm(this.#mixed, ffnNorm, stream.eps, this.#mixed, 1)
    gate.apply(this.#mixed, [this.#logits], 1)
    try {
      router.route(this.#logits, this.#ids, this.#weights, 1)
    } catch (error) {
      // numbers that are not finite are for the layer itself to refuse
      if (error instanceof VectorOpsError && error.code === 'ERR_VECTOR_OPS_NONFINITE') return
      throw error
    }
    expect(layer, this.#ids)
  }
}
