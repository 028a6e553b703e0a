import type { Ranks } from './ranks.js'

const LOG2_BITS = 20
const GOLDEN = 0x9e3779b1
const WIDE = 0xe0 // lead bytes of three- and four-byte characters

const widthOf = (lead: number): number => (lead < 0xf0 ? 3 : 4)

/** The code point of the whole wide character at `at`, or -1 when there is none before `end`. */
const wideAt = (bytes: Uint8Array, at: number, end: number): number => {
  const lead = bytes[at]!
  if (lead < WIDE || at + widthOf(lead) > end) return -1
  const three = ((bytes[at + 1]! & 0x3f) << 6) | (bytes[at + 2]! & 0x3f)
  return lead < 0xf0
    ? ((lead & 0x0f) << 12) | three
    : ((lead & 0x07) << 18) | (three << 6) | (bytes[at + 3]! & 0x3f)
}

const bitOf = (left: number, right: number): number =>
  Math.imul(Math.imul(left, GOLDEN) ^ right, GOLDEN) >>> (32 - LOG2_BITS)

/**
 * Where no token can reach across: between two neighbouring wide characters that no token joins. Merges never cross
 * such a seam, so the two sides can be encoded apart. Han and Hangul runs become short; other text has no seams.
 */
export class Seams {
  readonly #joined = new Int32Array(1 << (LOG2_BITS - 5)) // a bit for each pair of wide characters inside a token
  readonly #partly = new Uint8Array(65536) // the two bytes at a boundary where a token holds a part of a character

  constructor(ranks: Ranks) {
    const { bytes, offsets, size } = ranks
    for (let id = 0; id < size; id++) this.#learn(bytes, offsets[id]!, offsets[id + 1]!)
  }

  /** Notes the boundaries inside one token, whose first and last characters may be cut. */
  #learn(bytes: Uint8Array, start: number, end: number): void {
    let left = -1
    for (let at = start; at < end; ) {
      if (bytes[at]! < WIDE) {
        left = -1
        at++
        continue
      }
      const right = wideAt(bytes, at, end)
      if (left >= 0 && right >= 0) this.#join(bitOf(left, right))
      else if (at > start) this.#partly[(bytes[at - 1]! << 8) | bytes[at]!] = 1
      left = right
      at += widthOf(bytes[at]!)
    }
  }

  #join(bit: number): void {
    const word = bit >>> 5
    this.#joined[word] = this.#joined[word]! | (1 << (bit & 31))
  }

  /** The first seam in `bytes[from .. end)`, well-formed UTF-8, after `from`; `end` when there is none. */
  next(bytes: Uint8Array, from: number, end: number): number {
    let left = -1
    for (let at = from; at < end; ) {
      const right = wideAt(bytes, at, end)
      if (right < 0) {
        left = -1
        at++
        continue
      }
      if (left >= 0 && this.#partly[(bytes[at - 1]! << 8) | bytes[at]!] === 0) {
        const bit = bitOf(left, right)
        if ((this.#joined[bit >>> 5]! & (1 << (bit & 31))) === 0) return at
      }
      left = right
      at += widthOf(bytes[at]!)
    }
    return end
  }
}
