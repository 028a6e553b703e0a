import { grown, grownFloat } from './growable.js'

const ABSENT = -1

/**
 * Min-heap over small integer ids whose priority can be changed in place: (primary, secondary), lower first.
 * `set` and `remove` are O(log n), `first` is O(1).
 */
export class IndexedHeap {
  #heap = new Int32Array(0)
  #positionOf = new Int32Array(0)
  #primary = new Float64Array(0)
  #secondary = new Float64Array(0)
  #size = 0

  /** The id with the lowest priority, or -1 when empty. */
  first(): number {
    return this.#size === 0 ? ABSENT : this.#heap[0]!
  }

  set(id: number, primary: number, secondary: number): void {
    this.#positionOf = grown(this.#positionOf, id + 1, ABSENT)
    this.#primary = grownFloat(this.#primary, id + 1)
    this.#secondary = grownFloat(this.#secondary, id + 1)
    this.#primary[id] = primary
    this.#secondary[id] = secondary
    if (this.#positionOf[id] === ABSENT) {
      this.#heap = grown(this.#heap, this.#size + 1, ABSENT)
      this.#place(id, this.#size++)
    }
    this.#settle(this.#positionOf[id]!)
  }

  /** Takes the id out; an id that is not in the heap is left alone. */
  remove(id: number): void {
    const position = id < this.#positionOf.length ? this.#positionOf[id]! : ABSENT
    if (position === ABSENT) return
    const last = this.#heap[--this.#size]!
    this.#positionOf[id] = ABSENT
    if (last === id) return
    this.#place(last, position)
    this.#settle(position)
  }

  #place(id: number, position: number): void {
    this.#heap[position] = id
    this.#positionOf[id] = position
  }

  #before(left: number, right: number): boolean {
    const difference = this.#primary[left]! - this.#primary[right]!
    return difference < 0 || (difference === 0 && this.#secondary[left]! < this.#secondary[right]!)
  }

  /** Moves the id at `position` up, or else down, until the heap order holds again. */
  #settle(position: number): void {
    const id = this.#heap[position]!
    let at = position
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#before(id, this.#heap[parent]!)) break
      this.#place(this.#heap[parent]!, at)
      at = parent
    }
    for (let child = 2 * at + 1; child < this.#size; child = 2 * at + 1) {
      const right = child + 1
      if (right < this.#size && this.#before(this.#heap[right]!, this.#heap[child]!)) child = right
      if (!this.#before(this.#heap[child]!, id)) break
      this.#place(this.#heap[child]!, at)
      at = child
    }
    this.#place(id, at)
  }
}
