const SLACK_BYTES = 3 // so that a word can be read at the last byte
const CHUNK_CODE_POINTS = 400_000

const SURROGATE = /[\ud800-\udbff]/

const isHighSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xd800
const isLowSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xdc00

const isPairAt = (text: string, unit: number): boolean =>
  isHighSurrogate(text.charCodeAt(unit)) && isLowSurrogate(text.charCodeAt(unit + 1))

/** The number of four-byte characters: each is two UTF-16 units and one code point. */
const countAstral = (bytes: Uint8Array, from: number, to: number): number => {
  let count = 0
  for (let i = from; i < to; i++) if (bytes[i]! >= 0xf0) count++
  return count
}

/** The UTF-8 of up to 400,000 code points of a text, in a buffer that the next chunk reuses. */
export class Chunk {
  bytes = new Uint8Array(0)
  view = new DataView(this.bytes.buffer)
  lengthBytes = 0
  readonly #utf8 = new TextEncoder() // gives U+FFFD for each lone surrogate

  /** Takes the code points from UTF-16 unit `from` on; returns the unit after them. */
  load(text: string, from: number): number {
    this.#reserve(Math.min(3 * (text.length - from), 4 * CHUNK_CODE_POINTS))
    this.lengthBytes = 0
    let unit = from
    let missing = CHUNK_CODE_POINTS
    while (missing > 0 && unit < text.length) {
      let to = Math.min(text.length, unit + missing)
      if (isPairAt(text, to - 1)) to += to - 1 > unit ? -1 : 1
      const start = this.lengthBytes
      const part = from === 0 && to === text.length ? text : text.slice(unit, to)
      this.lengthBytes += this.#utf8.encodeInto(part, this.bytes.subarray(start)).written
      missing -= to - unit
      if (SURROGATE.test(part)) missing += countAstral(this.bytes, start, this.lengthBytes)
      unit = to
    }
    return unit
  }

  #reserve(lengthBytes: number): void {
    if (this.bytes.length >= lengthBytes + SLACK_BYTES) return
    this.bytes = new Uint8Array(lengthBytes + SLACK_BYTES)
    this.view = new DataView(this.bytes.buffer)
  }
}
