import { grown } from './growable.js'

const NONE = -1

/** Doubly linked queues over slot numbers, several in the same two arrays: a slot is in at most one. All O(1). */
export class SlotQueues {
  #previous = new Int32Array(0)
  #next = new Int32Array(0)
  #queueOf = new Int32Array(0)
  #first = new Int32Array(0)
  #last = new Int32Array(0)

  /** The oldest slot of the queue, or -1. */
  first(queue: number): number {
    return queue < this.#first.length ? this.#first[queue]! : NONE
  }

  /** Puts a slot that is in no queue at the end of this one. */
  append(queue: number, slot: number): void {
    this.#reserve(queue, slot)
    const last = this.#last[queue]!
    this.#previous[slot] = last
    this.#next[slot] = NONE
    this.#queueOf[slot] = queue
    if (last === NONE) this.#first[queue] = slot
    else this.#next[last] = slot
    this.#last[queue] = slot
  }

  /** Takes the slot out of the queue it is in; a slot in none is left alone. */
  remove(slot: number): void {
    const queue = slot < this.#queueOf.length ? this.#queueOf[slot]! : NONE
    if (queue === NONE) return
    const previous = this.#previous[slot]!
    const next = this.#next[slot]!
    if (previous === NONE) this.#first[queue] = next
    else this.#next[previous] = next
    if (next === NONE) this.#last[queue] = previous
    else this.#previous[next] = previous
    this.#queueOf[slot] = NONE
  }

  #reserve(queue: number, slot: number): void {
    this.#previous = grown(this.#previous, slot + 1, NONE)
    this.#next = grown(this.#next, slot + 1, NONE)
    this.#queueOf = grown(this.#queueOf, slot + 1, NONE)
    this.#first = grown(this.#first, queue + 1, NONE)
    this.#last = grown(this.#last, queue + 1, NONE)
  }
}
