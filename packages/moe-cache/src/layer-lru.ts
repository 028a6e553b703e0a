import type { EvictionPolicy } from './eviction-policy.js'
import { grown } from './growable.js'
import { IndexedHeap } from './indexed-heap.js'
import { SlotQueues } from './slot-queues.js'

const EMPTY = -1

/**
 * One LRU a layer: the layer that holds most slots gives up its least recently used one, the asking layer on a tie.
 * A decoder visits its layers in a circle, which is the order plain LRU does worst on. O(log layers).
 */
class LayerLru implements EvictionPolicy {
  readonly #released = new SlotQueues()
  /** Layers with a released slot, fullest first. */
  readonly #donors = new IndexedHeap()
  #layerOf = new Int32Array(0)
  #held = new Int32Array(0)

  touch(slot: number, layer: number): void {
    this.#layerOf = grown(this.#layerOf, slot + 1, EMPTY)
    this.#held = grown(this.#held, layer + 1, 0)
    if (this.#layerOf[slot] === EMPTY) {
      this.#layerOf[slot] = layer
      this.#held[layer]! += 1
    }
    this.#released.remove(slot)
    this.#rank(layer)
  }

  release(slot: number, resident: boolean): void {
    const layer = this.#layerOf[slot]!
    if (resident) this.#released.append(layer, slot)
    else this.#forget(slot)
    this.#rank(layer)
  }

  victim(layer: number): number {
    const fullest = this.#donors.first()
    const asks = layer !== EMPTY && this.#released.first(layer) !== EMPTY
    const donor = asks && this.#held[layer]! >= this.#held[fullest]! ? layer : fullest
    const slot = this.#released.first(donor)
    this.#released.remove(slot)
    this.#forget(slot)
    this.#rank(donor)
    return slot
  }

  #forget(slot: number): void {
    this.#held[this.#layerOf[slot]!]! -= 1
    this.#layerOf[slot] = EMPTY
  }

  #rank(layer: number): void {
    if (this.#released.first(layer) === EMPTY) this.#donors.remove(layer)
    else this.#donors.set(layer, -this.#held[layer]!, layer)
  }
}

/** A fresh per-layer LRU. */
export const layerLru = (): EvictionPolicy => new LayerLru()
