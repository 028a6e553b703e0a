import type { K3Config } from './config.js'

/** What one decoder layer consists of. */
export interface LayerPlan {
  /** 0-based */
  readonly index: number
  readonly mixer: 'kda' | 'mla'
  readonly ffn: 'dense' | 'moe'
  /** the running residual is pushed as a finished block before this layer's mixer */
  readonly startsBlock: boolean
}

/** One row per decoder layer, in order. Layer 0 has the dense MLP, all others the mixture of experts. */
export function layerPlan(config: K3Config): readonly LayerPlan[] {
  const mla = new Set(config.mla.layers)
  return Array.from({ length: config.layerCount }, (_, index) => ({
    index,
    mixer: mla.has(index) ? 'mla' : 'kda',
    ffn: index === 0 ? 'dense' : 'moe',
    startsBlock: index % config.residualBlockSize === 0
  }))
}
