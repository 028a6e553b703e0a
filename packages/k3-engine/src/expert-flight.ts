import type { ExpertPlan } from '@k3/moe-cache'
import type { Batch } from '@k3/uring'
import { settle, waitFor } from './settle.js'
import { expertName } from './tensor-names.js'

/** What a flight is made from. */
export interface FlightParts {
  readonly plan: ExpertPlan
  /** Positions of the misses in the order in which they will arrive; one read of the batch for each. */
  readonly order: Int32Array
  /** Null when nothing is missing. */
  readonly reads: Batch | null
  /** Waits for the expert at a position that an earlier flight fills. */
  readonly awaitJoined: (position: number) => void
}

/** Experts that were planned together: those that are in memory first, then each as its last block lands. */
export class ExpertFlight {
  readonly plan: ExpertPlan
  readonly #parts: FlightParts
  #stage: 'hits' | 'joined' | 'misses' = 'hits'
  #landed = 0

  constructor(parts: FlightParts) {
    this.plan = parts.plan
    this.#parts = parts
  }

  /** Waits for at least one more and writes the positions of those that are there; returns how many, 0 after the last. */
  arrive(positions: Int32Array): number {
    const { hits, hitCount, joinedCount } = this.plan
    if (this.#stage === 'hits') {
      this.#stage = 'joined'
      positions.set(hits.subarray(0, hitCount))
      if (hitCount > 0) return hitCount
    }
    if (this.#stage === 'joined') {
      this.#stage = 'misses'
      if (joinedCount > 0) return this.#arriveJoined(positions)
    }
    return this.#arriveMissed(positions)
  }

  /** Whether the expert at this position has just been read by this flight. */
  hasRead(position: number): boolean {
    return this.#parts.order.indexOf(position) !== -1
  }

  /** Gives up what no drive has begun, and waits until nothing is written any more, well or not. */
  settle(): void {
    this.#parts.reads?.giveUp()
    // a slot may be claimed again at once, so no read may still be writing into it
    for (let i = 0; i < this.#parts.order.length; i++) settle(this.#parts.reads!, i)
  }

  #arriveJoined(positions: Int32Array): number {
    const { joined, joinedCount } = this.plan
    for (let i = 0; i < joinedCount; i++) {
      this.#parts.awaitJoined(joined[i]!)
      positions[i] = joined[i]!
    }
    return joinedCount
  }

  #arriveMissed(positions: Int32Array): number {
    const { order, reads } = this.#parts
    let count = 0
    while (this.#landed < order.length) {
      if (count > 0 && !reads!.ended(this.#landed)) break
      const expert = this.plan.experts[order[this.#landed]!]!
      waitFor(reads!, this.#landed, () => expertName(this.plan.layer, expert))
      positions[count++] = order[this.#landed++]!
    }
    return count
  }
}
