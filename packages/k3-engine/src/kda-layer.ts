import { createKda, type Kda, type KdaInputs, type KdaState } from '@k3/kda'
import type { Layer, LayerState, Linears } from './interfaces.js'
import type { LayerParts } from './layer-parts.js'
import { layerTensorName } from './tensor-names.js'

/** Kimi Delta Attention with its projections (docs/spec/SPEC.md §6). */
export class KdaLayer implements Layer {
  readonly #kda: Kda
  readonly #project: Linears
  readonly #decayUp: Linears
  readonly #output: Linears
  readonly #inputs: KdaInputs
  readonly #projected: Float32Array[]
  readonly #decayLow: Float32Array
  readonly #mixed: Float32Array

  constructor(index: number, { config, weights, scratch, native, watch }: LayerParts) {
    const { headCount, headDim, convTaps, gateLowerBound } = config.kda
    const name = (suffix: string) => layerTensorName(index, `self_attn.${suffix}`)
    const shape = { heads: headCount, headDim, convTaps, gateLowerBound, normEps: config.rmsNormEps }
    const parameters = {
      qConv: weights.vector(name('q_conv1d.weight')),
      kConv: weights.vector(name('k_conv1d.weight')),
      vConv: weights.vector(name('v_conv1d.weight')),
      aLog: weights.vector(name('A_log')),
      dtBias: weights.vector(name('dt_bias')),
      oNorm: weights.vector(name('o_norm.weight'))
    }
    this.#kda = watch(createKda(shape, parameters, native), { forward: 'attention.kda' })
    const linears = (label: string, names: string[]) =>
      watch(weights.linears(names.map((linear) => name(`${linear}.weight`))), { apply: `attention.${label}` })
    this.#project = linears('project', ['q_proj', 'k_proj', 'v_proj', 'g_proj', 'f_a_proj', 'b_proj'])
    this.#decayUp = linears('decay-up', ['f_b_proj'])
    this.#output = linears('output', ['o_proj'])
    const width = headCount * headDim
    const [q, k, v, gate] = ['q', 'k', 'v', 'gate'].map((row) => scratch.rows(row, width)) as Float32Array[]
    const beta = scratch.rows('beta', headCount)
    this.#inputs = { q: q!, k: k!, v: v!, gate: gate!, beta, decay: scratch.rows('decay', width) }
    this.#decayLow = scratch.rows('decay low', headDim)
    this.#projected = [q!, k!, v!, gate!, this.#decayLow, beta]
    this.#mixed = scratch.rows('mixed', width)
  }

  createState(): KdaState {
    return this.#kda.createState()
  }

  forward(x: Float32Array, state: LayerState | null, out: Float32Array, tokens: number): void {
    this.#project.apply(x, this.#projected, tokens)
    this.#decayUp.apply(this.#decayLow, [this.#inputs.decay], tokens)
    this.#kda.forward(this.#inputs, state as KdaState, this.#mixed, tokens)
    this.#output.apply(this.#mixed, [out], tokens)
  }
}
