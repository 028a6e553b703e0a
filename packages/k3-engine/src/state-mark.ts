import { KdaState } from '@k3/kda'
import { MlaCache } from '@k3/mla'
import type { LayerState } from './interfaces.js'
import type { SequenceState } from './states.js'

/**
 * A place in a sequence that it can return to. KDA states are copied, into the same memory at each `take`; latents are
 * only counted, since a longer sequence has them unchanged.
 */
export class StateMark {
  #position = 0
  #logits: Float32Array | null = null
  readonly #kept: (LayerState | null)[] = []

  take(state: SequenceState): void {
    this.#position = state.position
    this.#logits = state.logits
    state.layers.forEach((layer, i) => {
      const kept = this.#kept[i]
      if (layer instanceof KdaState && kept instanceof KdaState) kept.restore(layer)
      else this.#kept[i] = layer === null || layer instanceof MlaCache ? null : layer.copy()
    })
  }

  /** The state has only gone on since `take`; a mark can be returned to any number of times. */
  restore(state: SequenceState): void {
    state.layers.forEach((layer, i) => {
      const kept = this.#kept[i]!
      if (layer instanceof MlaCache) layer.truncate(this.#position)
      else if (layer instanceof KdaState) layer.restore(kept as KdaState)
      else if (layer !== null) state.layers[i] = kept.copy()
    })
    state.ids.length = this.#position
    state.logits = this.#logits
  }
}
