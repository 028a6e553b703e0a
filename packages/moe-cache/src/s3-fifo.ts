import type { EvictionPolicy } from './eviction-policy.js'
import { ExpertTable } from './expert-table.js'
import { grown } from './growable.js'
import { SlotQueues } from './slot-queues.js'

const SMALL = 0
const MAIN = 1
const SMALL_SHARE = 0.1
const MOST_USES = 3
const USES_TO_STAY = 2
const NEVER = 0

/**
 * Three queues without reordering: a newcomer waits in a small one and gets into the main one when it is used again
 * before it reaches the end, or when it comes back soon after it was evicted (a ghost). The main queue gives an expert
 * that was used another round for each use, three at most. O(1), amortised over the rounds its uses paid for.
 *
 * A slot keeps its place while it is pinned; one that comes to its turn meanwhile is put at the end of its queue when it
 * is released.
 * Source: Yang et al., FIFO queues are all you need for cache eviction, SOSP 2023.
 */
class S3Fifo implements EvictionPolicy {
  readonly #queues = new SlotQueues()
  /** (layer, expert) → serial of its eviction from the small queue, 0 when it is no ghost */
  readonly #evictedAt = new ExpertTable(NEVER)
  #evictions = 0
  /** Slots of each queue, pinned ones included. */
  readonly #held = new Int32Array(2)
  #queueOf = new Int32Array(0)
  #uses = new Int32Array(0)
  #pinned = new Int32Array(0)
  #layerOf = new Int32Array(0)
  #expertOf = new Int32Array(0)

  touch(slot: number, layer: number, expert: number): void {
    this.#reserve(slot)
    this.#pinned[slot] = 1
    if (this.#queueOf[slot] !== -1) {
      this.#uses[slot] = Math.min(MOST_USES, this.#uses[slot]! + 1)
      return
    }
    const queue = this.#isGhost(layer, expert) ? MAIN : SMALL
    this.#evictedAt.set(layer, expert, NEVER)
    this.#layerOf[slot] = layer
    this.#expertOf[slot] = expert
    this.#uses[slot] = 0
    this.#queueOf[slot] = queue
    this.#held[queue]! += 1
  }

  release(slot: number, resident: boolean): void {
    this.#pinned[slot] = 0
    if (!resident) this.#forget(slot)
    else if (!this.#queues.holds(slot)) this.#queues.append(this.#queueOf[slot]!, slot)
  }

  victim(): number {
    for (;;) {
      const queue = this.#nextQueue()
      const slot = this.#queues.first(queue)
      this.#queues.remove(slot)
      if (this.#pinned[slot] === 1) continue
      if (queue === SMALL && this.#uses[slot]! >= USES_TO_STAY) this.#moveToMain(slot)
      else if (queue === MAIN && this.#uses[slot]! > 0) {
        this.#uses[slot]! -= 1
        this.#queues.append(MAIN, slot)
      } else {
        if (queue === SMALL)
          this.#evictedAt.set(this.#layerOf[slot]!, this.#expertOf[slot]!, ++this.#evictions)
        this.#forget(slot)
        return slot
      }
    }
  }

  /** The small queue while it has its share or the main one has nothing to give. */
  #nextQueue(): number {
    const isFull = this.#held[SMALL]! >= SMALL_SHARE * (this.#held[SMALL]! + this.#held[MAIN]!)
    const preferred = isFull ? SMALL : MAIN
    return this.#queues.first(preferred) === -1 ? 1 - preferred : preferred
  }

  #moveToMain(slot: number): void {
    this.#held[SMALL]! -= 1
    this.#held[MAIN]! += 1
    this.#queueOf[slot] = MAIN
    this.#uses[slot] = 0
    this.#queues.append(MAIN, slot)
  }

  /** As many ghosts are remembered as the main queue has slots. */
  #isGhost(layer: number, expert: number): boolean {
    const serial = this.#evictedAt.get(layer, expert)
    return (
      serial !== NEVER &&
      this.#evictions - serial < (1 - SMALL_SHARE) * (this.#held[SMALL]! + this.#held[MAIN]!)
    )
  }

  #forget(slot: number): void {
    this.#queues.remove(slot)
    this.#held[this.#queueOf[slot]!]! -= 1
    this.#queueOf[slot] = -1
  }

  #reserve(slot: number): void {
    this.#queueOf = grown(this.#queueOf, slot + 1, -1)
    this.#uses = grown(this.#uses, slot + 1, 0)
    this.#pinned = grown(this.#pinned, slot + 1, 0)
    this.#layerOf = grown(this.#layerOf, slot + 1, 0)
    this.#expertOf = grown(this.#expertOf, slot + 1, 0)
  }
}

/** A fresh S3-FIFO. */
export const s3Fifo = (): EvictionPolicy => new S3Fifo()
