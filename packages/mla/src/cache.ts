import { alignedFloats, atLeast, count } from '@k3/native-kit'
import { native } from './native.js'

const rowsOf = (length: number, from: Float32Array) => {
  const rows = alignedFloats(length, native())
  rows.set(from)
  return rows
}

/** The latents of one sequence in one layer: one row of `latentDim + sharedKeyDim` numbers for each token. */
export class MlaCache {
  /** Numbers of one row: the normed latent, then the shared key part as projected. */
  readonly rowLength: number
  #rows: Float32Array
  #length: number

  /**
   * Made by `mla.createCache()`; or over rows that were saved, which it then owns and of which the first `length` count.
   * @throws RangeError (ERR_OUT_OF_RANGE) when there are fewer rows, TypeError (ERR_INVALID_ARG_TYPE)
   */
  constructor(rowLength: number, rows: Float32Array, length: number) {
    count('rowLength', rowLength, 1)
    count('length', length, 0)
    atLeast('rows', rows, length * rowLength)
    this.rowLength = rowLength
    this.#rows = rows
    this.#length = length
  }

  /** Tokens in the cache. */
  get length(): number {
    return this.#length
  }

  /**
   * f32 [capacity, rowLength]; another array after `reserve` had to grow it. From 2 MiB on its buffer stays: named
   * in a transfer list it is copied or refused, by version of Node.js.
   */
  get rows(): Float32Array {
    return this.#rows
  }

  /** Memory taken now, in bytes. */
  get bytes(): number {
    return this.#rows.byteLength
  }

  /**
   * Makes room for `tokens` more rows: doubles when it must grow, so that appending stays linear.
   * @throws RangeError (ERR_OUT_OF_RANGE) for a negative number; RangeError of the engine when there is no memory
   */
  reserve(tokens: number): void {
    count('tokens', tokens, 0)
    const need = (this.#length + tokens) * this.rowLength
    if (need <= this.#rows.length) return
    const kept = this.#rows.subarray(0, this.#length * this.rowLength)
    this.#rows = rowsOf(Math.max(need, 2 * kept.length), kept)
  }

  /** Counts `tokens` rows that were written behind the last one. @throws RangeError (ERR_OUT_OF_RANGE) beyond the capacity */
  advance(tokens: number): void {
    count('tokens', tokens, 0)
    atLeast('rows', this.#rows, (this.#length + tokens) * this.rowLength)
    this.#length += tokens
  }

  /** Drops every row from `length` on. @throws RangeError (ERR_OUT_OF_RANGE) when there are fewer rows */
  truncate(length: number): void {
    count('length', length, 0)
    count('the number of rows', this.#length, length)
    this.#length = length
  }

  /** An independent copy, without spare capacity. */
  copy(): MlaCache {
    const used = this.#length * this.rowLength
    return new MlaCache(this.rowLength, rowsOf(used, this.#rows.subarray(0, used)), this.#length)
  }
}
