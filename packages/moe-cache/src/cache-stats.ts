import { grownFloat } from './growable.js'

/** A snapshot of the cache. Requests are counted when they are planned: hits + misses = requests, aborted ones included. */
export interface CacheStats {
  /** Slots in use by the cache, over all layers. */
  readonly slots: number
  /** Slots whose expert may be used now (an expert still being filled is not resident). */
  readonly resident: number
  /** Slots held by open plans, resident or being filled. */
  readonly pinned: number
  /** Requests that need no read of their own, `joined` included. */
  readonly hits: number
  /** The hits another open plan was already filling, for instance a lookahead. */
  readonly joined: number
  readonly misses: number
  /** Experts that lost their slot to another one or to a smaller `resize`. */
  readonly evictions: number
  /** hits / (hits + misses), 0 before the first request. */
  readonly hitRate: number
  /** The layers asked for so far, ascending. */
  readonly layers: readonly { layer: number; hits: number; misses: number; hitRate: number }[]
}

const rate = (hits: number, misses: number): number => (hits + misses === 0 ? 0 : hits / (hits + misses))

/** The running counts behind `CacheStats`. */
export class Counters {
  joined = 0
  evictions = 0
  #hits = new Float64Array(0)
  #misses = new Float64Array(0)

  add(layer: number, hits: number, misses: number): void {
    this.#hits = grownFloat(this.#hits, layer + 1)
    this.#misses = grownFloat(this.#misses, layer + 1)
    this.#hits[layer]! += hits
    this.#misses[layer]! += misses
  }

  reset(): void {
    this.joined = 0
    this.evictions = 0
    this.#hits.fill(0)
    this.#misses.fill(0)
  }

  snapshot(slots: number, resident: number, pinned: number): CacheStats {
    const layers = []
    let hits = 0
    let misses = 0
    for (const [layer, layerHits] of this.#hits.entries()) {
      const layerMisses = this.#misses[layer]!
      if (layerHits + layerMisses === 0) continue
      hits += layerHits
      misses += layerMisses
      layers.push({ layer, hits: layerHits, misses: layerMisses, hitRate: rate(layerHits, layerMisses) })
    }
    const { joined, evictions } = this
    return { slots, resident, pinned, hits, joined, misses, evictions, hitRate: rate(hits, misses), layers }
  }
}
