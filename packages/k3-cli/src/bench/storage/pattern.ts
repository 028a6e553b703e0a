// A prime: two bytes whose positions differ by whole pages of 4096 bytes are of one place only every 68 GB.
const PERIOD = 2 ** 24 - 3

/** Beyond this many bytes the pattern repeats on page boundaries. */
export const MOST_PATTERN_BYTES = 4096 * PERIOD

/** Bytes that follow from their position in a file, so that a block that landed elsewhere shows. */
export class Pattern {
  readonly #period = Buffer.from(randomWords(Math.ceil(PERIOD / 4)).buffer).subarray(0, PERIOD)

  /** Writes what a file has from byte `offset` on. */
  fill(bytes: Uint8Array, offset: number): void {
    for (const [at, piece] of this.#pieces(bytes.length, offset)) bytes.set(piece, at)
  }

  /** Index of the first byte that is not what a file has from byte `offset` on; -1 when all are. */
  firstDifference(bytes: Uint8Array, offset: number): number {
    for (const [at, piece] of this.#pieces(bytes.length, offset)) {
      const got = bytes.subarray(at, at + piece.length)
      if (!piece.equals(got)) return at + piece.findIndex((byte, i) => byte !== got[i])
    }
    return -1
  }

  *#pieces(length: number, offset: number): Generator<readonly [number, Buffer]> {
    for (let at = 0; at < length; ) {
      const start = (offset + at) % PERIOD
      const piece = this.#period.subarray(start, start + length - at)
      yield [at, piece]
      at += piece.length
    }
  }
}

/** Every word is given once, and every bit of it depends on its whole place: no byte has a period of its own. */
const randomWords = (count: number): Uint32Array => {
  const words = new Uint32Array(count)
  for (let i = 0; i < count; i++) {
    let word = i + 1
    word = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
    word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35)
    words[i] = word ^ (word >>> 16)
  }
  return words
}
