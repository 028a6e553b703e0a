import { createMla, type Mla, MlaCache, type MlaInputs } from '@k3/mla'
import type { VectorOps } from '@k3/vector-ops'
import type { Layer, LayerState, Linears } from './interfaces.js'
import type { LayerParts } from './layer-parts.js'
import { layerTensorName } from './tensor-names.js'

// What the vendor's code executes for its two latent norms, whatever rms_norm_eps says (docs/INVARIANTS.md).
const LATENT_NORM_EPS = 1e-6

/** Gated multi-head latent attention with its projections (docs/spec/SPEC.md §7). */
export class MlaLayer implements Layer {
  readonly #ops: VectorOps
  readonly #mla: () => Mla
  readonly #rowLength: number
  readonly #project: Linears
  readonly #queryUp: Linears
  readonly #output: Linears
  readonly #queryNorm: Float32Array
  readonly #queryLow: Float32Array
  readonly #inputs: MlaInputs
  readonly #projected: readonly Float32Array[]
  readonly #queries: readonly Float32Array[]
  readonly #mixed: Float32Array

  constructor(index: number, { config, weights, ops, scratch, native, watch }: LayerParts) {
    const { headCount: heads, queryRank, latentRank: latentDim, nopeDim, sharedKeyDim, valueDim } = config.mla
    const name = (suffix: string) => layerTensorName(index, `self_attn.${suffix}`)
    this.#ops = watch(ops, { rmsNorm: 'attention.query-norm' })
    const shape = { heads, nopeDim, sharedKeyDim, valueDim, latentDim, normEps: LATENT_NORM_EPS }
    const kvNorm = weights.vector(name('kv_a_layernorm.weight'))
    this.#rowLength = latentDim + sharedKeyDim
    this.#mla = weights.tensor(name('kv_b_proj.weight'), (kvUp) =>
      watch(createMla(shape, { kvNorm, kvUp }, native), { forward: 'attention.mla' })
    )
    const linears = (label: string, names: string[]) =>
      watch(weights.linears(names.map((linear) => name(`${linear}.weight`))), { apply: `attention.${label}` })
    this.#project = linears('project', ['q_a_proj', 'kv_a_proj_with_mqa', 'g_proj'])
    this.#queryUp = linears('query-up', ['q_b_proj'])
    this.#output = linears('output', ['o_proj'])
    this.#queryNorm = weights.vector(name('q_a_layernorm.weight'))
    this.#queryLow = scratch.rows('query low', queryRank)
    this.#inputs = {
      queries: scratch.rows('q', heads * (nopeDim + sharedKeyDim)),
      kv: scratch.rows('key value', latentDim + sharedKeyDim),
      gate: scratch.rows('gate', heads * valueDim)
    }
    this.#projected = [this.#queryLow, this.#inputs.kv, this.#inputs.gate]
    this.#queries = [this.#inputs.queries]
    this.#mixed = scratch.rows('mixed', heads * valueDim)
  }

  createState(): MlaCache {
    return new MlaCache(this.#rowLength, new Float32Array(0), 0)
  }

  forward(x: Float32Array, state: LayerState | null, out: Float32Array, tokens: number): void {
    this.#project.apply(x, this.#projected, tokens)
    this.#ops.rmsNorm(this.#queryLow, this.#queryNorm, LATENT_NORM_EPS, this.#queryLow, tokens)
    this.#queryUp.apply(this.#queryLow, this.#queries, tokens)
    this.#mla().forward(this.#inputs, state as MlaCache, this.#mixed, tokens)
    this.#output.apply(this.#mixed, [out], tokens)
  }
}
