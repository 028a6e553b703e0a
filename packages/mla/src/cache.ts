import { count } from '@k3/native-kit'

/** The latents of one sequence in one layer: one row of `latentDim + sharedKeyDim` numbers for each token. */
export class MlaCache {
  /** Numbers of one row: the normed latent, then the shared key part as projected. */
  readonly rowLength: number
  #rows: Float32Array
  #length = 0

  /** Made by `mla.createCache()`; or over rows that were saved, of which the first `length` count. */
  constructor(rowLength: number, rows: Float32Array, length: number) {
    count('length', length, 0)
    count('rows.length', rows.length, length * rowLength)
    this.rowLength = rowLength
    this.#rows = rows
    this.#length = length
  }

  /** Tokens in the cache. */
  get length(): number {
    return this.#length
  }

  /** f32 [capacity, rowLength]; another array after `reserve` had to grow it. */
  get rows(): Float32Array {
    return this.#rows
  }

  /** Memory taken now, in bytes. */
  get bytes(): number {
    return this.#rows.byteLength
  }

  /** Makes room for `tokens` more rows: doubles when it must grow, so that appending stays linear. */
  reserve(tokens: number): void {
    const need = (this.#length + tokens) * this.rowLength
    if (need <= this.#rows.length) return
    const grown = new Float32Array(Math.max(need, 2 * this.#rows.length))
    grown.set(this.#rows.subarray(0, this.#length * this.rowLength))
    this.#rows = grown
  }

  /** Counts `tokens` rows that were written behind the last one. */
  advance(tokens: number): void {
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
    return new MlaCache(this.rowLength, this.#rows.slice(0, this.#length * this.rowLength), this.#length)
  }
}
