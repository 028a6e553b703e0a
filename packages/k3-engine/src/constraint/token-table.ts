const LITTLE_ENDIAN = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1
const [LOW, HIGH] = LITTLE_ENDIAN ? [0, 1] : [1, 0]
const ID_BITS = 24
const ID_MASK = 2 ** ID_BITS - 1

/** The bytes of tokens one after the other by id: a vocabulary as two arrays, not as 163,840 objects. */
export class TokenTable {
  readonly bytes: Uint8Array
  /** [tokens + 1]: where each one begins */
  readonly starts: Uint32Array

  /** Ids are places in the list, at most 2^24; an empty one stands for no token. */
  constructor(tokens: Iterable<Uint8Array>) {
    const starts = [0]
    let bytes = new Uint8Array(1 << 12)
    let end = 0
    for (const token of tokens) {
      if (end + token.length > bytes.length) {
        const longer = new Uint8Array(2 * (end + token.length))
        longer.set(bytes.subarray(0, end))
        bytes = longer
      }
      bytes.set(token, end)
      end += token.length
      starts.push(end)
    }
    this.bytes = bytes.slice(0, end)
    this.starts = Uint32Array.from(starts)
  }

  /** The bytes where they lie; empty when there is no such token. */
  bytesOf(id: number): Uint8Array {
    return this.bytes.subarray(this.starts[id], this.starts[id + 1])
  }

  /** The ids in the order of their bytes, which differ. */
  sorted(): Uint32Array {
    const { bytes, starts } = this
    const present: number[] = []
    for (let id = 0; id < starts.length - 1; id++) if (starts[id + 1]! > starts[id]!) present.push(id)
    // five bytes and the id as one number: a native sort, and few ties
    const halves = new Uint32Array(2 * present.length)
    for (let i = 0; i < present.length; i++) {
      const id = present[i]!
      const at = starts[id]!
      const length = starts[id + 1]! - at
      const byte = (place: number): number => (place < length ? bytes[at + place]! : 0)
      halves[2 * i + HIGH!] = (byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)
      halves[2 * i + LOW!] = (byte(4) << ID_BITS) | id
    }
    const keys = new BigUint64Array(halves.buffer).sort()
    const ids = Uint32Array.from(present, (_, i) => halves[2 * i + LOW!]! & ID_MASK)
    const prefix = BigInt(ID_BITS)
    for (let first = 0; first < ids.length; ) {
      let end = first + 1
      while (end < ids.length && keys[end]! >> prefix === keys[first]! >> prefix) end++
      if (end - first > 1) ids.subarray(first, end).sort((a, b) => this.#compare(a, b))
      first = end
    }
    return ids
  }

  #compare(a: number, b: number): number {
    const { bytes, starts } = this
    const [one, other] = [starts[a]!, starts[b]!]
    const [length, otherLength] = [starts[a + 1]! - one, starts[b + 1]! - other]
    for (let i = 0; i < length && i < otherLength; i++) {
      if (bytes[one + i] !== bytes[other + i]) return bytes[one + i]! - bytes[other + i]!
    }
    return length - otherLength
  }
}
