import { createExpertMlp, createMatrix, type ExpertBatch } from '@k3/mxfp4'
import { sameBits } from './errors.js'
import { matrixBytes, matrixCount } from './operands.js'
import { type Matrices, productWorks } from './products.js'
import type { BenchSizes } from './sizes.js'
import { type Bench, type Bound, inTurns, type Native, type Work } from './work.js'

/** Products with the MXFP4 matrices of the routed experts, and the experts of one token together. */
export const expertWorks = (sizes: BenchSizes, threads: number): Work[] => {
  const { routed_expert_hidden_size: latent, moe_intermediate_size: inner } = sizes.geometry
  const counts = [...new Set([1, threads])]
  const matvec = (rows: number, cols: number) =>
    inModes(counts, (mode, count) => {
      const name = `mxfp4-matvec-${rows}x${cols}`
      const product = { name, mode, unit: 'GB/s', threads: count, rows, cols, tokens: 1 } as const
      return productWorks(product, matricesOf(sizes, rows, cols, mode), sizes)
    })
  return [
    ...matvec(inner, latent),
    ...matvec(latent, inner),
    ...sizes.expertColumns.flatMap((tokens) => {
      const name = `mxfp4-gemm-${inner}x${latent}x${tokens}`
      const product = {
        name,
        mode: 'exact',
        unit: 'GFLOP/s',
        threads,
        rows: inner,
        cols: latent,
        tokens
      } as const
      return productWorks(product, matricesOf(sizes, inner, latent, 'exact'), sizes)
    }),
    ...inModes(counts, (mode, count) => [expertMlp(sizes, mode, count)])
  ]
}

/** The works of every mode on every number of threads. */
const inModes = (counts: readonly number[], works: (mode: Work['mode'], threads: number) => Work[]): Work[] =>
  (['exact', 'int8'] as const).flatMap((mode) => counts.flatMap((count) => works(mode, count)))

const matricesOf = (sizes: BenchSizes, rows: number, cols: number, activations: Work['mode']): Matrices => ({
  bytes: matrixBytes(sizes),
  count: () => matrixCount(sizes),
  make: ({ operands: { experts } }, turn, few, native) => {
    const at = turn * matrixBytes(sizes)
    const packed = { region: experts, offset: at }
    const scales = { region: experts, offset: at + (rows * cols) / 2 }
    return createMatrix({ packed, scales, rows: few, cols }, { ...native, activations })
  }
})

/** The routed experts of one token in one call. */
const expertMlp = (sizes: BenchSizes, mode: Work['mode'], threads: number): Work => {
  const {
    num_experts_per_token: count,
    routed_expert_hidden_size: latent,
    moe_intermediate_size: inner
  } = sizes.geometry
  const bytes = 3 * count * matrixBytes(sizes)
  const flops = 6 * count * latent * inner
  const row = {
    name: `expert-mlp-${count}`,
    mode,
    cache: 'cold',
    threads,
    unit: 'GB/s',
    bytes,
    flops
  } as const
  return { ...row, bind: (bench) => bindMlp(row, bench) }
}

const bindMlp = ({ name, mode, cache, threads, bytes }: Omit<Work, 'bind'>, bench: Bench): Bound => {
  const { sizes, scalar } = bench
  const { experts, x, out } = bench.operands
  const { num_experts_per_token: count, routed_expert_hidden_size: latent } = sizes.geometry
  const mlp = (native: Native) =>
    createExpertMlp(expertSpec(sizes), experts, { ...native, activations: mode })
  const { apply } = mlp(bench.native(threads))
  const run = inTurns(cache, Math.floor(matrixCount(sizes) / (3 * count)), (turn) => {
    const batch = batchOf(count, turn * bytes, sizes)
    return () => apply(x, batch, out)
  })
  const check = () => {
    apply(x, batchOf(count, 0, sizes), out)
    const want = new Float32Array(latent)
    mlp(scalar).apply(x, batchOf(1, 0, sizes), want)
    sameBits(name, out, want)
  }
  return { run, overhead: null, calls: 1, check }
}

/** w1, w2, w3 one after the other. */
const expertSpec = (sizes: BenchSizes) => {
  const {
    routed_expert_hidden_size: latent,
    moe_intermediate_size: inner,
    num_experts_per_token
  } = sizes.geometry
  const whole = matrixBytes(sizes)
  const codes = (latent * inner) / 2
  const layout = {
    w1Packed: 0,
    w1Scale: codes,
    w2Packed: whole,
    w2Scale: whole + codes,
    w3Packed: 2 * whole,
    w3Scale: 2 * whole + codes
  }
  return { latent, inner, topK: num_experts_per_token, beta: 4, linearBeta: 25, layout }
}

/** The first token goes to every one of the experts from byte `at` on. */
const batchOf = (count: number, at: number, sizes: BenchSizes): ExpertBatch => ({
  count,
  bases: Float64Array.from({ length: count }, (_, e) => at + 3 * e * matrixBytes(sizes)),
  starts: Int32Array.from({ length: count + 1 }, (_, e) => e),
  tokens: new Int32Array(count)
})
