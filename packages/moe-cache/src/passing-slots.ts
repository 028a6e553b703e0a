import { grown } from './growable.js'
import { SlotQueues } from './slot-queues.js'

const ALL = 0

/** Slots whose expert only a scan has used; those that are not pinned stand in a queue. All O(1). */
export class PassingSlots {
  readonly #released = new SlotQueues()
  #passes = new Int32Array(0)
  /** Passing slots, pinned ones included. */
  count = 0
  /** Those that are not pinned. */
  released = 0

  has(slot: number): boolean {
    return slot < this.#passes.length && this.#passes[slot] === 1
  }

  /** A pinned slot begins to pass. */
  begin(slot: number): void {
    this.#passes = grown(this.#passes, slot + 1, 0)
    this.#passes[slot] = 1
    this.count++
  }

  /** A pinned slot passes no more: its expert is used by others, or gone. */
  end(slot: number): void {
    this.#passes[slot] = 0
    this.count--
  }

  pinned(slot: number): void {
    this.#released.remove(slot)
    this.released--
  }

  unpinned(slot: number): void {
    this.#released.append(ALL, slot)
    this.released++
  }

  /** The slot that was unpinned last, or -1. */
  latest(): number {
    return this.#released.last(ALL)
  }
}
