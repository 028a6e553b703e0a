import { MinHeap } from './min-heap.js'
import { extendHash, NONE, type Vocabulary } from './vocabulary.js'

const POSITIONS = 2 ** 21 // more than the bytes of the longest chunk, see chunk.ts
const UNKNOWN = 0
const REACHED = 1
const UNREACHED = 2
const LOG2_MEMO = 14
const GOLDEN = 0x9e3779b1
const HEAP_FROM_BYTES = 64 // below, looking through all pairs for the lowest rank beats a heap

/**
 * Byte-pair merging of one piece: the adjacent pair whose joined bytes are the token of the lowest rank is merged,
 * leftmost first, until no adjacent pair joins to a token. Parts are named by the position of their first byte.
 */
export class PairMerge {
  readonly #vocabulary: Vocabulary
  readonly #memo = new Int32Array(4 << LOG2_MEMO).fill(-1)
  readonly #reached: Uint8Array // [size]
  #capacity = 0
  #prefix = new Int32Array(0) // [n + 1] prefix hashes
  #next = new Int32Array(0) // [n] the part to the right, n after the last
  #previous = new Int32Array(0) // [n + 1] the part to the left, -1 before the first
  #id = new Int32Array(0) // [n]
  #pair = new Int32Array(0) // [n] id of the part joined with the next one; NONE when that is no token

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary
    this.#reached = new Uint8Array(vocabulary.size)
  }

  /** Appends the ids of `bytes[start .. end)` to `ids`. */
  append(bytes: Uint8Array, start: number, end: number, ids: number[]): void {
    const n = end - start
    this.#begin(bytes, start, n)
    if (n < HEAP_FROM_BYTES) this.#scan(bytes, start, n)
    else this.#heap(bytes, start, n)
    const next = this.#next
    for (let part = 0; part < n; part = next[part]!) ids.push(this.#id[part]!)
  }

  /** Whether merging the bytes of the token `id` gives that token: a vocabulary may hold tokens without a way to them. */
  reaches(id: number): boolean {
    if (this.#reached[id] === UNKNOWN) {
      const { bytes, offsets } = this.#vocabulary
      const ids: number[] = []
      this.append(bytes, offsets[id]!, offsets[id + 1]!, ids)
      this.#reached[id] = ids.length === 1 ? REACHED : UNREACHED
    }
    return this.#reached[id] === REACHED
  }

  #begin(bytes: Uint8Array, start: number, n: number): void {
    if (n > this.#capacity) this.#reserve(Math.max(256, 2 * n))
    const { idOfByte, idOfTwoBytes } = this.#vocabulary
    const prefix = this.#prefix
    const next = this.#next
    const previous = this.#previous
    const id = this.#id
    const pair = this.#pair
    let hash = 0
    for (let k = 0; k < n; k++) {
      const byte = bytes[start + k]!
      hash = extendHash(hash, byte)
      prefix[k + 1] = hash
      next[k] = k + 1
      previous[k] = k - 1
      id[k] = idOfByte[byte]!
      pair[k] = idOfTwoBytes[(byte << 8) | bytes[start + k + 1]!]!
    }
    pair[n - 1] = NONE
  }

  #reserve(capacity: number): void {
    this.#capacity = capacity
    this.#prefix = new Int32Array(capacity + 1)
    this.#next = new Int32Array(capacity)
    this.#previous = new Int32Array(capacity + 1)
    this.#id = new Int32Array(capacity)
    this.#pair = new Int32Array(capacity)
  }

  #scan(bytes: Uint8Array, start: number, n: number): void {
    const pair = this.#pair
    for (;;) {
      let lowest = NONE
      let part = 0
      for (let k = 0; k < n; k++) {
        const joined = pair[k]! | 0
        if (joined < lowest) {
          lowest = joined
          part = k
        }
      }
      if (lowest === NONE) return
      this.#join(bytes, start, n, part)
    }
  }

  #heap(bytes: Uint8Array, start: number, n: number): void {
    const pair = this.#pair
    const previous = this.#previous
    const heap = new MinHeap(3 * n) // n pairs at first, two more for each of less than n merges
    for (let k = 0; k < n; k++) if (pair[k] !== NONE) heap.push(pair[k]! * POSITIONS + k)
    while (heap.size > 0) {
      const key = heap.pop()
      const joined = Math.floor(key / POSITIONS)
      const part = key - joined * POSITIONS
      if (pair[part] !== joined) continue // the part or its neighbour has been merged since
      this.#join(bytes, start, n, part)
      if (pair[part] !== NONE) heap.push(pair[part]! * POSITIONS + part)
      const left = previous[part]!
      if (left >= 0 && pair[left] !== NONE) heap.push(pair[left]! * POSITIONS + left)
    }
  }

  /** Merges a part with the next one. */
  #join(bytes: Uint8Array, start: number, n: number, part: number): void {
    const next = this.#next
    const previous = this.#previous
    const pair = this.#pair
    const right = next[part]!
    const after = next[right]!
    this.#id[part] = pair[part]!
    next[part] = after
    previous[after] = part
    pair[right] = NONE
    pair[part] = after < n ? this.#rank(bytes, start, part, after) : NONE
    const left = previous[part]!
    if (left >= 0) pair[left] = this.#rank(bytes, start, left, part)
  }

  /** The id of the token that the part `left` and its neighbour `right` join to. */
  #rank(bytes: Uint8Array, start: number, left: number, right: number): number {
    const memo = this.#memo
    const leftId = this.#id[left]!
    const rightId = this.#id[right]!
    const entry = (Math.imul(Math.imul(leftId, GOLDEN) + rightId, GOLDEN) >>> (32 - LOG2_MEMO)) << 2
    if (memo[entry] === leftId && memo[entry + 1] === rightId) return memo[entry + 2]!
    const joined = this.#find(bytes, start, left, this.#next[right]!)
    memo[entry] = leftId
    memo[entry + 1] = rightId
    memo[entry + 2] = joined
    return joined
  }

  /** The id of the token in `bytes[start + from .. start + to)`. */
  #find(bytes: Uint8Array, start: number, from: number, to: number): number {
    const vocabulary = this.#vocabulary
    const length = to - from
    if (length > vocabulary.longestBytes) return NONE
    const hash = (this.#prefix[to]! - Math.imul(this.#prefix[from]!, vocabulary.powers[length]!)) | 0
    return vocabulary.find(bytes, start + from, start + to, hash)
  }
}
