const LOG2_ENTRIES = 17
const ENTRY_WORDS = 16 // one cache line: [bytes << 8 | ids] [8 words of the piece, zero-padded] [up to 7 ids]
const KEY = 1
const IDS = 9
const MOST_IDS = ENTRY_WORDS - IDS
const MOST_BYTES = 4 * (IDS - KEY)
const MULTIPLIER = 0x9e3779b1

/** The last word of a piece, with the bytes after the piece cleared. */
const tailWord = (view: DataView, at: number, lengthBytes: number): number =>
  view.getInt32(at, true) & ((1 << (8 * lengthBytes)) - 1)

const entryOf = (view: DataView, from: number, length: number): number => {
  let hash = length
  let at = from
  for (let left = length; left > 0; left -= 4) {
    const word = left >= 4 ? view.getInt32(at, true) : tailWord(view, at, left)
    hash = Math.imul(((hash << 5) | (hash >>> 27)) ^ word, MULTIPLIER)
    at += 4
  }
  return (hash >>> (32 - LOG2_ENTRIES)) * ENTRY_WORDS
}

/** The ids of pieces met lately: direct-mapped, at most 8 MiB, a newer piece displaces an older one. */
export class PieceCache {
  readonly #words = new Int32Array(ENTRY_WORDS << LOG2_ENTRIES)

  /**
   * Appends the ids of the piece to `ids` when they are here. The piece is the `length` bytes of `view` at `from`;
   * three more bytes can be read after it.
   */
  append(view: DataView, from: number, length: number, ids: number[]): boolean {
    if (length > MOST_BYTES) return false
    const words = this.#words
    const entry = entryOf(view, from, length)
    const sizes = words[entry]!
    if (sizes >> 8 !== length) return false
    let key = entry + KEY
    let at = from
    for (let left = length; left > 0; left -= 4) {
      const word = left >= 4 ? view.getInt32(at, true) : tailWord(view, at, left)
      if (words[key++] !== word) return false
      at += 4
    }
    const last = entry + IDS + (sizes & 0xff)
    for (let i = entry + IDS; i < last; i++) ids.push(words[i]!)
    return true
  }

  /** Keeps `ids[first ..]` for the piece, unless an entry cannot hold it. */
  keep(view: DataView, from: number, length: number, ids: readonly number[], first: number): void {
    const count = ids.length - first
    if (length > MOST_BYTES || count > MOST_IDS) return
    const words = this.#words
    const entry = entryOf(view, from, length)
    words[entry] = (length << 8) | count
    let at = from
    let key = entry + KEY
    for (let left = length; left > 0; left -= 4) {
      words[key++] = left >= 4 ? view.getInt32(at, true) : tailWord(view, at, left)
      at += 4
    }
    for (let i = 0; i < count; i++) words[entry + IDS + i] = ids[first + i]!
  }
}
