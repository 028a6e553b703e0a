import { createMachineProbe, createVectorOps, type VectorOps } from '@k3/vector-ops'
import { BenchError } from './errors.js'
import { waves } from './operands.js'
import type { BenchSizes } from './sizes.js'
import { type Bench, type Bound, bindOp, type Native, turnsFor, type Work } from './work.js'

const EPS = 1e-5
const BETAS = { beta: 4, linearBeta: 25 }
// A call takes microseconds: so many make one measurement.
const SMALL_CALLS = 50
const FORK_CALLS = 2000

/** What the equations of a row read: sources of the residual mix, the oldest first, and one weight for each column. */
interface Rows {
  readonly sources: readonly Float32Array[]
  readonly weight: Float32Array
}

interface RowOp {
  readonly name: string
  readonly width: number
  /** Rows a call reads and writes for each token. */
  readonly rows: number
  readonly run: (ops: VectorOps, rows: Rows, out: Float32Array, tokens: number) => void
}

/** The equations between the products, for one token as it is in the caches and for a chunk from memory; a fork and join. */
export const rowWorks = (sizes: BenchSizes, threads: number): Work[] => [
  ...rowOps(sizes).flatMap((op) => [
    rowWork(op, sizes, threads, 1),
    rowWork(op, sizes, threads, sizes.prefill)
  ]),
  forkJoin(threads)
]

/** Memory of the rows that take turns, in bytes. */
export const rowBytes = (sizes: BenchSizes): number =>
  rowOps(sizes).reduce(
    (sum, op) => sum + turnsFor(bytesOf(op, sizes.prefill), sizes) * bytesOf(op, sizes.prefill),
    0
  )

const rowOps = ({ geometry }: BenchSizes): RowOp[] => {
  const { hidden_size: hidden, num_hidden_layers, attn_res_block_size } = geometry
  const blocks = Math.ceil(num_hidden_layers / attn_res_block_size)
  const inner = geometry.num_shared_experts * geometry.moe_intermediate_size
  return [
    {
      name: 'residual-mix',
      width: hidden,
      rows: blocks + 2,
      run: (ops, { sources, weight }, out, tokens) => ops.residualMix(sources, weight, EPS, out, tokens)
    },
    {
      name: 'rms-norm',
      width: hidden,
      rows: 2,
      run: (ops, { sources, weight }, out, tokens) => ops.rmsNorm(sources[0]!, weight, EPS, out, tokens)
    },
    {
      name: 'situ',
      width: inner,
      rows: 3,
      run: (ops, { sources }, out, tokens) =>
        ops.situGlu(sources[0]!, sources[1]!, BETAS, out, tokens * inner)
    }
  ]
}

const bytesOf = ({ width, rows }: RowOp, tokens: number): number => 4 * tokens * rows * width

const rowWork = (op: RowOp, sizes: BenchSizes, threads: number, tokens: number): Work => {
  const bytes = bytesOf(op, tokens)
  const many = tokens > 1
  const name = many ? `${op.name}-${tokens}` : op.name
  const [cache, unit] = many ? (['cold', 'GB/s'] as const) : (['warm', 'µs'] as const)
  const row = { name, mode: 'exact', cache, threads, unit, bytes, flops: 0 } as const
  const bind = (bench: Bench) => {
    const weight = waves(op.width, 1)
    const make = (native: Native) => {
      const ops = createVectorOps(native)
      const sources = Array.from({ length: op.rows - 1 }, () => waves(tokens * op.width, 3))
      return (out: Float32Array) => op.run(ops, { sources, weight }, out, tokens)
    }
    const turns = turnsFor(bytes, sizes)
    return bindOp(row, { turns, calls: many ? 1 : SMALL_CALLS, length: tokens * op.width, make }, bench)
  }
  return { ...row, bind }
}

/** A multiply-add on every thread, which no op takes for too little to share: what is timed is handing out and waiting. */
const forkJoin = (threads: number): Work => {
  const cost = { bytes: 0, flops: 0 }
  const row = { name: 'fork-join', mode: 'exact', cache: 'warm', threads, unit: 'µs', ...cost } as const
  const bind = (bench: Bench): Bound => {
    const native = bench.native(threads)
    const shared = createMachineProbe(native)
    const serial = createMachineProbe({ isa: native.isa })
    const check = () => {
      const [all, one] = [shared, serial].map((probe) => probe.multiplyAdd(1)) as [number, number]
      if (all !== threads * one) throw new BenchError('ERR_BENCH_WRONG', `fork-join: ${all / one} parts ran`)
    }
    const overhead = () => void serial.multiplyAdd(1)
    return { run: () => void shared.multiplyAdd(1), overhead, calls: FORK_CALLS, check }
  }
  return { ...row, bind }
}
