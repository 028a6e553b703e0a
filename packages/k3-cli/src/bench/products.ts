import { sameBits } from './errors.js'
import type { BenchSizes } from './sizes.js'
import { type Bench, type Bound, caches, inTurns, type Native, type Unit, type Work } from './work.js'

// Rows of a matrix the scalar kernel computes for the check: they do not depend on the others.
const CHECKED_ROWS = 32

/** A product of one matrix with `tokens` columns. */
export interface Product {
  readonly name: string
  readonly mode: Work['mode']
  readonly unit: Unit
  readonly threads: number
  readonly rows: number
  readonly cols: number
  readonly tokens: number
}

/** Where the matrices of a product lie. */
export interface Matrices {
  /** Of one matrix. */
  readonly bytes: number
  /** How many there are. */
  readonly count: (bench: Bench) => number
  /** Binds the first `rows` rows of matrix `turn`. */
  readonly make: (
    bench: Bench,
    turn: number,
    rows: number,
    native: Native
  ) => { apply(x: Float32Array, out: Float32Array, tokens: number): void }
}

/** The product with cold weights, and with warm ones where they fit. */
export const productWorks = (product: Product, matrices: Matrices, sizes: BenchSizes): Work[] => {
  const { name, mode, unit, threads, rows, cols, tokens } = product
  const { bytes } = matrices
  return caches(bytes, sizes).map((cache) => ({
    name,
    mode,
    cache,
    threads,
    unit,
    bytes,
    flops: 2 * tokens * rows * cols,
    bind: (bench) => bindProduct(product, matrices, cache, bench)
  }))
}

const bindProduct = (product: Product, matrices: Matrices, cache: Work['cache'], bench: Bench): Bound => {
  const { name, rows, tokens } = product
  const { x, out } = bench.operands
  const native = bench.native(product.threads)
  const run = inTurns(cache, matrices.count(bench), (turn) => {
    const matrix = matrices.make(bench, turn, rows, native)
    return () => matrix.apply(x, out, tokens)
  })
  const check = () => {
    matrices.make(bench, 0, rows, native).apply(x, out, tokens)
    const few = Math.min(rows, CHECKED_ROWS)
    const want = new Float32Array(tokens * few)
    matrices.make(bench, 0, few, bench.scalar).apply(x, want, tokens)
    for (let t = 0; t < tokens; t++)
      sameBits(name, out.subarray(t * rows), want.subarray(t * few, (t + 1) * few))
  }
  return { run, overhead: null, calls: 1, check }
}
