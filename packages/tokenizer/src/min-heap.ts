/** A binary min-heap of at most `capacity` numbers. */
export class MinHeap {
  readonly #keys: Float64Array
  #size = 0

  constructor(capacity: number) {
    this.#keys = new Float64Array(capacity)
  }

  get size(): number {
    return this.#size
  }

  push(key: number): void {
    const keys = this.#keys
    let at = this.#size++
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (keys[parent]! <= key) break
      keys[at] = keys[parent]!
      at = parent
    }
    keys[at] = key
  }

  /** Removes the lowest key; the heap must not be empty. */
  pop(): number {
    const keys = this.#keys
    const lowest = keys[0]!
    const size = --this.#size
    const key = keys[size]!
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= size) break
      if (child + 1 < size && keys[child + 1]! < keys[child]!) child++
      if (keys[child]! >= key) break
      keys[at] = keys[child]!
      at = child
    }
    keys[at] = key
    return lowest
  }
}
