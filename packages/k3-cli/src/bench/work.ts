import { sameBits } from './errors.js'
import type { Isa } from './isa.js'
import type { Operands } from './operands.js'
import type { BenchSizes } from './sizes.js'

/** In what the result of a work is given: bytes of weights or operations a second, or the time of a call. */
export type Unit = 'GB/s' | 'GFLOP/s' | 'ms' | 'µs'

/** One row of the table, before anything is allocated for it. */
export interface Work {
  /** Stable: programs look rows up by it. */
  readonly name: string
  readonly mode: 'exact' | 'int8'
  /** A call has just ended. cold: of other operands, which take turns, so that these come from memory. warm: of the same. */
  readonly cache: 'cold' | 'warm'
  readonly threads: number
  readonly unit: Unit
  /** Bytes a call moves from or to memory; operations it needs, a multiply-add being two. The limit follows from them. */
  readonly bytes: number
  readonly flops: number
  readonly bind: (bench: Bench) => Bound
}

/** A work whose operands exist. */
export interface Bound {
  readonly run: () => void
  /** What a call costs besides the work; its time is taken off. */
  readonly overhead: (() => void) | null
  /** Calls that make one measurement. */
  readonly calls: number
  /** Computes once and holds the result against the scalar kernel. @throws ERR_BENCH_WRONG */
  readonly check: () => void
}

/** The pool and the instruction set an op is bound to. */
export interface Native {
  readonly pool: { readonly handle: object }
  readonly isa: Isa
}

/** What works are bound to. */
export interface Bench {
  readonly sizes: BenchSizes
  readonly operands: Operands
  /** For the works on that many threads. */
  readonly native: (threads: number) => Native
  /** The scalar kernels: what results are held against. */
  readonly scalar: Native
}

/**
 * Calls of `count` equal works by turns, or of the first alone. Each has been called once: what an op takes for itself is
 * there.
 */
export const inTurns = (
  cache: Work['cache'],
  count: number,
  bind: (turn: number) => () => void
): (() => void) => {
  const calls = Array.from({ length: cache === 'cold' ? count : 1 }, (_, turn) => bind(turn))
  for (const call of calls) call()
  let next = 0
  return () => calls[next++ % calls.length]!()
}

/** cold always; warm where one set of operands leaves half of the last cache free. */
export const caches = (bytes: number, { cacheBytes }: BenchSizes): Work['cache'][] =>
  2 * bytes <= cacheBytes ? ['cold', 'warm'] : ['cold']

/** How many sets of operands of that size no cache holds together. */
export const turnsFor = (bytes: number, { cacheBytes }: BenchSizes): number =>
  Math.max(2, Math.ceil((3 * cacheBytes) / bytes))

/** An op that is bound the same way for every instruction set, and starts afresh each time it is bound. */
export interface Op {
  /** How many sets of operands take turns. */
  readonly turns: number
  readonly calls: number
  /** Numbers of the result. */
  readonly length: number
  readonly make: (native: Native, turn: number) => (out: Float32Array) => void
}

/** Runs the op by turns; the check compares the whole result. */
export const bindOp = ({ name, cache, threads }: Omit<Work, 'bind'>, op: Op, bench: Bench): Bound => {
  const { out } = bench.operands
  const native = bench.native(threads)
  const run = inTurns(cache, op.turns, (turn) => {
    const call = op.make(native, turn)
    return () => call(out)
  })
  const check = () => {
    const want = new Float32Array(op.length)
    op.make(bench.scalar, 0)(want)
    op.make(native, 0)(out)
    sameBits(name, out, want)
  }
  return { run, overhead: null, calls: op.calls, check }
}
