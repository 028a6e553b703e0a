import type { ExpertMlp } from '@k3/mxfp4'
import type { Router, VectorOps } from '@k3/vector-ops'
import type { K3Config } from './config.js'
import { ExpertGroups } from './expert-groups.js'
import { ExpertWave } from './expert-wave.js'
import type { ExpertSource, Layer, LayerState, Linears } from './interfaces.js'
import type { LayerParts } from './layer-parts.js'
import type { Scratch } from './scratch.js'
import type { Watch } from './spans.js'
import { layerTensorName } from './tensor-names.js'

/** What the router of one layer decided. chosen: [tokens, k], highest selection key first; weights likewise. */
export interface Routing {
  readonly chosen: Int32Array
  readonly weights: Float32Array
}

/**
 * Route, project down, run the chosen experts, norm, project up, add the shared experts (docs/spec/SPEC.md §8.3).
 * The reads are submitted first; shared experts and hits are computed while they fly, each missed expert when it is there.
 */
export class LatentMoe implements Layer {
  /** Of the last forward call. */
  readonly routing: Routing
  readonly #index: number
  readonly #config: K3Config
  readonly #watch: Watch
  readonly #ops: VectorOps
  readonly #source: ExpertSource
  readonly #mlp: ExpertMlp
  readonly #project: Linears
  readonly #up: Linears
  readonly #sharedDown: Linears
  readonly #router: Router
  readonly #latentNorm: Float32Array
  readonly #groups: ExpertGroups
  readonly #wave: ExpertWave
  readonly #rows: ReturnType<typeof moeRows>

  constructor(
    index: number,
    { config, weights, ops, scratch, watch }: LayerParts,
    source: ExpertSource,
    mlp: ExpertMlp
  ) {
    const name = (suffix: string) => layerTensorName(index, `block_sparse_moe.${suffix}`)
    const { expertCount, topK } = config.moe
    this.#index = index
    this.#config = config
    this.#watch = watch
    this.#ops = watch(ops, { rmsNorm: 'latent.norm', situGlu: 'shared.situ', add: 'latent.add' })
    this.#source = watch(source, { begin: 'experts.submit' })
    this.#mlp = watch(mlp, { apply: 'experts.mlp', combine: 'experts.combine' })
    const inputs = ['gate', 'routed_expert_down_proj', 'shared_experts.gate_proj', 'shared_experts.up_proj']
    const linears = (label: string, names: string[]) =>
      watch(weights.linears(names.map((linear) => name(`${linear}.weight`))), { apply: label })
    this.#project = linears('moe.project', inputs)
    this.#up = linears('latent.up', ['routed_expert_up_proj'])
    this.#sharedDown = linears('shared.down', ['shared_experts.down_proj'])
    const router = ops.createRouter({
      bias: weights.vector(name('gate.e_score_correction_bias')),
      k: topK,
      renormalize: config.moe.renormalize,
      scalingFactor: config.moe.routedScale,
      name: `router of layer ${this.#index}`
    })
    this.#router = watch(router, { route: 'router.route' })
    this.#latentNorm = weights.vector(name('routed_expert_norm.weight'))
    this.#groups = new ExpertGroups(scratch.maxTokens, topK, expertCount)
    this.#wave = new ExpertWave(this.#groups, topK)
    this.#rows = moeRows(config, scratch)
    const choices = scratch.maxTokens * topK
    this.routing = { chosen: new Int32Array(choices), weights: new Float32Array(choices) }
  }

  createState(): null {
    return null
  }

  forward(x: Float32Array, _state: LayerState | null, out: Float32Array, tokens: number): void {
    const { hiddenSize, rmsNormEps, moe } = this.#config
    const { logits, latent, sharedGate, sharedUp, pairs, routed, raised } = this.#rows
    const { chosen, weights } = this.routing
    this.#project.apply(x, [logits, latent, sharedGate, sharedUp], tokens)
    this.#router.route(logits, chosen, weights, tokens)
    this.#groups.group(chosen, tokens, moe.topK)
    this.#runExperts(out, tokens)
    this.#mlp.combine(pairs, this.#wave.pairOf, weights, routed, tokens)
    this.#ops.rmsNorm(routed, this.#latentNorm, rmsNormEps, routed, tokens)
    this.#up.apply(routed, [raised], tokens)
    this.#ops.add(raised, out, out, tokens * hiddenSize)
  }

  /** The shared experts into `out` while the others are on their way, then each that has arrived into its pairs. */
  #runExperts(out: Float32Array, tokens: number): void {
    const { count, experts } = this.#groups
    const wave = this.#wave
    const reads = this.#source.begin(this.#index, experts.subarray(0, count), tokens)
    const batch = this.#watch(reads, { arrive: 'experts.wait' })
    try {
      this.#shared(out, tokens)
      wave.restart()
      for (;;) {
        wave.accept(batch.arrive(wave.positions, wave.bases))
        if (wave.count === 0) break
        this.#mlp.apply(this.#rows.latent, wave, this.#rows.pairs)
      }
    } catch (error) {
      batch.abort()
      throw error
    }
    batch.end()
  }

  #shared(out: Float32Array, tokens: number): void {
    const { sharedGate, sharedUp } = this.#rows
    const length = tokens * this.#config.moe.sharedExpertCount * this.#config.moe.intermediateSize
    this.#ops.situGlu(sharedGate, sharedUp, this.#config.situ, sharedGate, length)
    this.#sharedDown.apply(sharedGate, [out], tokens)
  }
}

const moeRows = ({ hiddenSize, moe }: K3Config, scratch: Scratch) => {
  const sharedWidth = moe.sharedExpertCount * moe.intermediateSize
  return {
    logits: scratch.rows('router logits', moe.expertCount),
    latent: scratch.rows('latent', moe.latentSize),
    sharedGate: scratch.rows('mlp gate', sharedWidth),
    sharedUp: scratch.rows('mlp up', sharedWidth),
    pairs: scratch.rows('expert outputs', moe.topK * moe.latentSize),
    routed: scratch.rows('routed', moe.latentSize),
    raised: scratch.rows('raised', hiddenSize)
  }
}
