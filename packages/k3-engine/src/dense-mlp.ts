import type { VectorOps } from '@k3/vector-ops'
import type { K3Config } from './config.js'
import type { Layer, LayerState, Linears } from './interfaces.js'
import type { LayerParts } from './layer-parts.js'
import { layerTensorName } from './tensor-names.js'

/** down(situ(gate x, up x)): the feed-forward block of layer 0 (docs/spec/SPEC.md §8.2). */
export class DenseMlp implements Layer {
  readonly #ops: VectorOps
  readonly #situ: K3Config['situ']
  readonly #gateUp: Linears
  readonly #down: Linears
  readonly #width: number
  readonly #gate: Float32Array
  readonly #up: Float32Array

  constructor(index: number, { config, weights, ops, scratch, watch }: LayerParts) {
    const name = (suffix: string) => layerTensorName(index, `mlp.${suffix}`)
    this.#ops = watch(ops, { situGlu: 'dense.situ' })
    this.#situ = config.situ
    const gateUp = weights.linears([name('gate_proj.weight'), name('up_proj.weight')])
    this.#gateUp = watch(gateUp, { apply: 'dense.gate-up' })
    this.#down = watch(weights.linears([name('down_proj.weight')]), { apply: 'dense.down' })
    this.#width = config.denseIntermediateSize
    this.#gate = scratch.rows('mlp gate', this.#width)
    this.#up = scratch.rows('mlp up', this.#width)
  }

  createState(): null {
    return null
  }

  forward(x: Float32Array, _state: LayerState | null, out: Float32Array, tokens: number): void {
    const { beta, linearBeta } = this.#situ
    this.#gateUp.apply(x, [this.#gate, this.#up], tokens)
    this.#ops.situGlu(this.#gate, this.#up, { beta, linearBeta }, this.#gate, tokens * this.#width)
    this.#down.apply(this.#gate, [out], tokens)
  }
}
