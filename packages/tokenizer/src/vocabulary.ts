import { TokenizerError } from './errors.js'
import type { Ranks } from './ranks.js'

const EMPTY = -1
const BASE = 0x01000193 // odd, so that every byte of a range keeps its weight modulo 2^32
const GOLDEN = 0x9e3779b1

/** The id that no token has. */
export const NONE = 0x7fffffff

/**
 * Byte strings to ids. A range's hash is the polynomial sum of (byte + 1) · BASE^(bytes after it) modulo 2^32, so
 * that the hash of any range inside a text follows from two prefix hashes: hash(s, e) = P[e] - P[s] · BASE^(e - s).
 */
export class Vocabulary {
  readonly bytes: Uint8Array
  readonly offsets: Uint32Array // [size + 1]
  readonly size: number
  readonly longestBytes: number
  readonly powers: Int32Array // [longestBytes + 1], BASE^i
  readonly idOfByte: Int32Array // [256]
  readonly idOfTwoBytes: Int32Array // [65536], NONE where the two bytes are no token
  readonly #slots: Int32Array // open addressing: id with the upper bits of the hash above it, or EMPTY
  readonly #shift: number
  readonly #idMask: number

  /** @throws ERR_TOKENIZER_DUPLICATE, ERR_TOKENIZER_BYTES */
  constructor(ranks: Ranks, file: string) {
    this.bytes = ranks.bytes
    this.offsets = ranks.offsets
    this.size = ranks.size
    const log2 = Math.ceil(Math.log2(this.size * 2)) // at most half of the slots are taken
    this.#shift = 32 - log2
    this.#idMask = (1 << log2) - 1
    this.#slots = new Int32Array(1 << log2).fill(EMPTY)
    this.idOfByte = new Int32Array(256).fill(NONE)
    this.idOfTwoBytes = new Int32Array(65536).fill(NONE)
    this.longestBytes = this.#insertAll(file)
    this.powers = new Int32Array(this.longestBytes + 1).fill(1)
    for (let i = 1; i < this.powers.length; i++) this.powers[i] = Math.imul(this.powers[i - 1]!, BASE)
    const missing = this.idOfByte.indexOf(NONE)
    if (missing >= 0) {
      const name = missing.toString(16).padStart(2, '0')
      throw new TokenizerError(
        'ERR_TOKENIZER_BYTES',
        `${file}: expected each of the 256 bytes as a token, found none for 0x${name}`,
        { file }
      )
    }
  }

  #insertAll(file: string): number {
    const { bytes, offsets, size } = this
    let longest = 0
    for (let id = 0; id < size; id++) {
      const start = offsets[id]!
      const end = offsets[id + 1]!
      const hash = hashRange(bytes, start, end)
      const other = this.find(bytes, start, end, hash)
      if (other !== NONE) {
        throw new TokenizerError(
          'ERR_TOKENIZER_DUPLICATE',
          `${file}, line ${id + 1}: expected a token not seen before, found the token of line ${other + 1}`,
          { file, line: id + 1 }
        )
      }
      this.#insert(hash, id)
      if (end - start === 1) this.idOfByte[bytes[start]!] = id
      if (end - start === 2) this.idOfTwoBytes[(bytes[start]! << 8) | bytes[start + 1]!] = id
      longest = Math.max(longest, end - start)
    }
    return longest
  }

  #insert(hash: number, id: number): void {
    const slots = this.#slots
    const mask = this.#idMask
    let slot = Math.imul(hash, GOLDEN) >>> this.#shift
    while (slots[slot] !== EMPTY) slot = (slot + 1) & mask
    slots[slot] = (hash & ~mask) | id
  }

  /** The id of the token `bytes[start .. end)`; NONE when there is no such token. */
  idOf(bytes: Uint8Array, start: number, end: number): number {
    if (end - start > this.longestBytes) return NONE
    return this.find(bytes, start, end, hashRange(bytes, start, end))
  }

  /** The id of the token `bytes[start .. end)`, whose hash is given; NONE when there is no such token. */
  find(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const slots = this.#slots
    const mask = this.#idMask
    const tag = hash & ~mask
    let slot = Math.imul(hash, GOLDEN) >>> this.#shift
    for (;;) {
      const entry = slots[slot]!
      if (entry === EMPTY) return NONE
      if ((entry & ~mask) === tag && this.#equals(entry & mask, bytes, start, end)) return entry & mask
      slot = (slot + 1) & mask
    }
  }

  #equals(id: number, bytes: Uint8Array, start: number, end: number): boolean {
    const own = this.bytes
    let at = this.offsets[id]!
    if (this.offsets[id + 1]! - at !== end - start) return false
    for (let i = start; i < end; i++) if (own[at++] !== bytes[i]) return false
    return true
  }
}

/** Extends a prefix hash by one byte. */
export const extendHash = (hash: number, byte: number): number => (Math.imul(hash, BASE) + byte + 1) | 0

/** The hash of `bytes[start .. end)`. */
const hashRange = (bytes: Uint8Array, start: number, end: number): number => {
  let hash = 0
  for (let i = start; i < end; i++) hash = extendHash(hash, bytes[i]!)
  return hash
}
