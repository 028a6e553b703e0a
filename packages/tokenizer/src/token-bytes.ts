import { TokenizerError } from './errors.js'
import type { Ranks } from './ranks.js'

/** The bytes of every id: the ranks, then the names of the special tokens. */
export class TokenBytes {
  readonly size: number
  readonly #bytes: Uint8Array
  readonly #offsets: Uint32Array // [size + 1]

  constructor(ranks: Ranks, specialNames: Iterable<string>) {
    const encoder = new TextEncoder()
    const names = Array.from(specialNames, (name) => encoder.encode(name))
    this.size = ranks.size + names.length
    this.#bytes = new Uint8Array(names.reduce((length, name) => length + name.length, ranks.bytes.length))
    this.#bytes.set(ranks.bytes)
    this.#offsets = new Uint32Array(this.size + 1)
    this.#offsets.set(ranks.offsets)
    let length = ranks.bytes.length
    names.forEach((name, i) => {
      this.#bytes.set(name, length)
      length += name.length
      this.#offsets[ranks.size + i + 1] = length
    })
  }

  /** A view of the bytes of `id`. @throws ERR_TOKENIZER_ID */
  of(id: number): Uint8Array {
    if (!Number.isInteger(id) || id < 0 || id >= this.size) {
      throw new TokenizerError(
        'ERR_TOKENIZER_ID',
        `expected a token id, an integer in 0 .. ${this.size - 1}, found ${String(id)}`,
        { id }
      )
    }
    return this.#bytes.subarray(this.#offsets[id]!, this.#offsets[id + 1]!)
  }
}
