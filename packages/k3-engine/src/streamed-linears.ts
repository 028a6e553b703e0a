import type { Linears } from './interfaces.js'

/** Rows of one of the matrices, as one segment holds them. */
export interface RowBlock {
  /** index of the matrix */
  readonly out: number
  readonly firstRow: number
  readonly rows: number
}

/** What one segment holds of a group of matrices. */
export interface StreamedPart {
  readonly segment: number
  readonly blocks: readonly RowBlock[]
  /** The product of the blocks when the segment lies in a place. */
  readonly bind: (place: number) => Linears
}

/** Matrices whose rows lie in one or several segments that come and go; bound once for each place they may lie. */
export class StreamedLinears implements Linears {
  /** by matrix */
  readonly #rows: readonly number[]
  readonly #parts: readonly StreamedPart[]
  readonly #use: (segment: number) => number
  /** by part, then by place */
  readonly #bound: Map<number, Linears>[]

  /** `use` waits for a segment and says where it lies. */
  constructor(rows: readonly number[], parts: readonly StreamedPart[], use: (segment: number) => number) {
    this.#rows = rows
    this.#parts = parts
    this.#use = use
    this.#bound = parts.map(() => new Map<number, Linears>())
  }

  apply(x: Float32Array, outs: readonly Float32Array[], tokens: number): void {
    for (let i = 0; i < this.#parts.length; i++) {
      const { blocks } = this.#parts[i]!
      const linears = this.#at(i)
      if (this.#isWhole(blocks)) linears.apply(x, outs, tokens)
      else this.#applyRows(linears, blocks, x, { outs, tokens })
    }
  }

  #at(part: number): Linears {
    const { segment, bind } = this.#parts[part]!
    const place = this.#use(segment)
    const known = this.#bound[part]!.get(place)
    if (known !== undefined) return known
    const linears = bind(place)
    this.#bound[part]!.set(place, linears)
    return linears
  }

  #isWhole(blocks: readonly RowBlock[]): boolean {
    const inPlace = ({ out, rows }: RowBlock, i: number) => out === i && rows === this.#rows[i]
    return blocks.length === this.#rows.length && blocks.every(inPlace)
  }

  /** Outputs are [tokens, all rows]: a block's rows are contiguous there for one token, and copied for several. */
  #applyRows(
    linears: Linears,
    blocks: readonly RowBlock[],
    x: Float32Array,
    { outs, tokens }: { outs: readonly Float32Array[]; tokens: number }
  ): void {
    const parts = blocks.map(({ out, firstRow, rows }) =>
      tokens === 1 ? outs[out]!.subarray(firstRow, firstRow + rows) : new Float32Array(tokens * rows)
    )
    linears.apply(x, parts, tokens)
    if (tokens === 1) return
    blocks.forEach(({ out, firstRow, rows }, i) => {
      const stride = this.#rows[out]!
      for (let token = 0; token < tokens; token++)
        outs[out]!.set(parts[i]!.subarray(token * rows, (token + 1) * rows), token * stride + firstRow)
    })
  }
}
