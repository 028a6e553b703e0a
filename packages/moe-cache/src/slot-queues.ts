import { grown } from './growable.js'

const NONE = -1

/** Slots and the queues they stand in share one numbering of links: slot s is 2 s, the two ends of queue q are 2 q + 1. */
const nodeOf = (slot: number): number => 2 * slot
const endOf = (queue: number): number => 2 * queue + 1

/**
 * Queues over slot numbers, several in the same two arrays: a slot is in at most one. Each is a circle closed by a node
 * of its own, so that a slot leaves and a whole queue moves without asking which queue it is. All O(1).
 */
export class SlotQueues {
  #previous = new Int32Array(0)
  #next = new Int32Array(0)

  /** The slot that was appended first, or -1. */
  first(queue: number): number {
    return this.#slotAt(queue, this.#next)
  }

  /** The slot that was appended last, or -1. */
  last(queue: number): number {
    return this.#slotAt(queue, this.#previous)
  }

  /** Puts a slot that is in no queue at the end of this one. */
  append(queue: number, slot: number): void {
    const end = this.#openEnd(queue)
    const node = nodeOf(slot)
    this.#reserve(node)
    const last = this.#previous[end]!
    this.#link(last, node)
    this.#link(node, end)
  }

  /** Takes the slot out of the queue it is in; a slot in none is left alone. */
  remove(slot: number): void {
    const node = nodeOf(slot)
    if (node >= this.#next.length || this.#next[node] === NONE) return
    this.#link(this.#previous[node]!, this.#next[node]!)
    this.#next[node] = NONE
  }

  /** Whether the slot is in a queue. */
  holds(slot: number): boolean {
    const node = nodeOf(slot)
    return node < this.#next.length && this.#next[node] !== NONE
  }

  /** Puts all slots of `from` at the end of `to`, in their order. */
  move(from: number, to: number): void {
    if (this.first(from) === NONE) return
    const source = this.#openEnd(from)
    const target = this.#openEnd(to)
    this.#link(this.#previous[target]!, this.#next[source]!)
    this.#link(this.#previous[source]!, target)
    this.#link(source, source)
  }

  #slotAt(queue: number, direction: Int32Array): number {
    const end = endOf(queue)
    if (end >= direction.length || direction[end] === NONE || direction[end] === end) return NONE
    return direction[end]! / 2
  }

  #openEnd(queue: number): number {
    const end = endOf(queue)
    this.#reserve(end)
    if (this.#next[end] === NONE) this.#link(end, end)
    return end
  }

  #link(left: number, right: number): void {
    this.#next[left] = right
    this.#previous[right] = left
  }

  #reserve(node: number): void {
    this.#previous = grown(this.#previous, node + 1, NONE)
    this.#next = grown(this.#next, node + 1, NONE)
  }
}
