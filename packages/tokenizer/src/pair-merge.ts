import { MinHeap } from './min-heap.js'
import { extendHash, NONE, type Vocabulary } from './vocabulary.js'

const POSITIONS = 2 ** 21 // more than the bytes of the longest chunk, see cuts.ts
const HEAP_FROM_BYTES = 96 // below, a scan for the lowest rank beats the heap

/**
 * Byte-pair merging of one piece: the adjacent pair whose joined bytes are the token of the lowest rank is merged,
 * leftmost first, until no adjacent pair joins to a token.
 */
export class PairMerge {
  readonly #vocabulary: Vocabulary
  #capacity = 0
  #prefix = new Int32Array(0) // [n + 1] prefix hashes
  #begin = new Int32Array(0) // [parts + 1] where each part begins
  #id = new Int32Array(0) // [parts]
  #pair = new Int32Array(0) // [parts] id of part k joined with its right neighbour, or NONE

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary
  }

  /** Appends the ids of `bytes[start .. end)`, at least two bytes, to `ids`. */
  append(bytes: Uint8Array, start: number, end: number, ids: number[]): void {
    const n = end - start
    this.#reserve(n)
    const prefix = this.#prefix
    let hash = 0
    for (let i = 0; i < n; i++) {
      hash = extendHash(hash, bytes[start + i]!)
      prefix[i + 1] = hash
    }
    if (n < HEAP_FROM_BYTES) this.#scan(bytes, start, n, ids)
    else this.#heapMerge(bytes, start, n, ids)
  }

  #reserve(n: number): void {
    if (n <= this.#capacity) return
    this.#capacity = Math.max(256, 2 * n)
    this.#prefix = new Int32Array(this.#capacity + 1)
    this.#begin = new Int32Array(this.#capacity + 1)
    this.#id = new Int32Array(this.#capacity)
    this.#pair = new Int32Array(this.#capacity)
  }

  /** The id of the token in `bytes[start + from .. start + to)`. */
  #rank(bytes: Uint8Array, start: number, from: number, to: number): number {
    const vocabulary = this.#vocabulary
    const length = to - from
    if (length > vocabulary.longestBytes) return NONE
    const hash = (this.#prefix[to]! - Math.imul(this.#prefix[from]!, vocabulary.powers[length]!)) | 0
    return vocabulary.find(bytes, start + from, start + to, hash)
  }

  #scan(bytes: Uint8Array, start: number, n: number, ids: number[]): void {
    const { idOfByte, idOfTwoBytes } = this.#vocabulary
    const begin = this.#begin
    const id = this.#id
    const pair = this.#pair
    for (let k = 0; k < n; k++) {
      begin[k] = k
      id[k] = idOfByte[bytes[start + k]!]!
      pair[k] = k + 1 < n ? idOfTwoBytes[(bytes[start + k]! << 8) | bytes[start + k + 1]!]! : NONE
    }
    begin[n] = n
    let parts = n
    for (;;) {
      let lowest = NONE
      let at = 0
      for (let k = 0; k < parts - 1; k++) {
        if (pair[k]! < lowest) {
          lowest = pair[k]!
          at = k
        }
      }
      if (lowest === NONE) break
      parts--
      id[at] = lowest
      for (let k = at + 1; k < parts; k++) {
        begin[k] = begin[k + 1]!
        id[k] = id[k + 1]!
        pair[k] = pair[k + 1]!
      }
      begin[parts] = n
      pair[at] = at + 1 < parts ? this.#rank(bytes, start, begin[at]!, begin[at + 2]!) : NONE
      if (at > 0) pair[at - 1] = this.#rank(bytes, start, begin[at - 1]!, begin[at + 1]!)
    }
    for (let k = 0; k < parts; k++) ids.push(id[k]!)
  }

  /** The same merges with parts named by their first byte, for O(n log n) on long pieces. */
  #heapMerge(bytes: Uint8Array, start: number, n: number, ids: number[]): void {
    const { idOfByte, idOfTwoBytes } = this.#vocabulary
    const next = this.#begin
    const id = this.#id
    const pair = this.#pair
    const previous = new Int32Array(n + 1)
    const heap = new MinHeap(3 * n)
    const propose = (part: number, joined: number): void => {
      pair[part] = joined
      if (joined !== NONE) heap.push(joined * POSITIONS + part)
    }
    for (let k = 0; k < n; k++) {
      next[k] = k + 1
      previous[k] = k - 1
      id[k] = idOfByte[bytes[start + k]!]!
      propose(k, k + 1 < n ? idOfTwoBytes[(bytes[start + k]! << 8) | bytes[start + k + 1]!]! : NONE)
    }
    while (heap.size > 0) {
      const key = heap.pop()
      const joined = Math.floor(key / POSITIONS)
      const part = key - joined * POSITIONS
      if (pair[part] !== joined) continue // the part or its neighbour has been merged since
      const right = next[part]!
      const after = next[right]!
      id[part] = joined
      pair[right] = NONE
      next[part] = after
      previous[after] = part
      propose(part, after < n ? this.#rank(bytes, start, part, next[after]!) : NONE)
      const left = previous[part]!
      if (left >= 0) propose(left, this.#rank(bytes, start, left, after))
    }
    for (let k = 0; k < n; k = next[k]!) ids.push(id[k]!)
  }
}
