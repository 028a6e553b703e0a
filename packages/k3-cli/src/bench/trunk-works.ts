import { createLinear, createLinearGroup } from '@k3/bf16-linear'
import { createVectorOps } from '@k3/vector-ops'
import { type Matrices, productWorks } from './products.js'
import type { BenchSizes } from './sizes.js'
import { type Bench, bindOp, caches, type Native, type Work } from './work.js'

const BETAS = { beta: 4, linearBeta: 25 }

/** Products with the trunk's bf16 matrices, the head's first. */
export const trunkWorks = (sizes: BenchSizes, threads: number): Work[] => {
  const { vocab_size, hidden_size, kda_num_heads, kda_head_dim, routed_expert_hidden_size } = sizes.geometry
  const width = kda_num_heads * kda_head_dim
  const product = (rows: number, cols: number, tokens: number, name: string) =>
    (tokens === 1 ? [...new Set([1, threads])] : [threads]).flatMap((count) => {
      const unit = tokens === 1 ? ('GB/s' as const) : ('GFLOP/s' as const)
      return productWorks(
        { name, mode: 'exact', unit, threads: count, rows, cols, tokens },
        matricesOf(rows, cols),
        sizes
      )
    })
  const matvec = (rows: number, cols: number) => product(rows, cols, 1, `bf16-matvec-${rows}x${cols}`)
  return [
    ...matvec(vocab_size, hidden_size),
    ...matvec(width, hidden_size),
    ...sizes.trunkColumns.flatMap((tokens) =>
      product(width, hidden_size, tokens, `bf16-gemm-${width}x${hidden_size}x${tokens}`)
    ),
    ...routerWorks(sizes, threads),
    ...product(routed_expert_hidden_size, hidden_size, 1, 'latent-down'),
    ...product(hidden_size, routed_expert_hidden_size, 1, 'latent-up'),
    sharedExperts(sizes, threads)
  ]
}

const matricesOf = (rows: number, cols: number): Matrices => {
  const bytes = 2 * rows * cols
  return {
    bytes,
    count: ({ operands }) => Math.floor(operands.trunk.bytes / bytes),
    make: (bench, turn, few, native) => linearAt(bench, turn * bytes, few, cols)(native)
  }
}

const linearAt =
  ({ operands }: Bench, offset: number, rows: number, cols: number) =>
  (native: Native) =>
    createLinear({ weights: { region: operands.trunk, offset }, rows, cols }, native)

/** The router's product and its choice. */
const routerWorks = (sizes: BenchSizes, threads: number): Work[] => {
  const { num_experts: experts, num_experts_per_token: k, hidden_size: cols } = sizes.geometry
  const bytes = 2 * experts * cols
  return caches(bytes, sizes).map((cache) => {
    const row = { name: 'router', mode: 'exact', cache, threads, unit: 'GB/s', bytes, flops: bytes } as const
    const bind = (bench: Bench) => {
      const { trunk, x } = bench.operands
      const make = (native: Native, turn: number) => {
        const linear = linearAt(bench, turn * bytes, experts, cols)(native)
        const spec = { bias: x.slice(0, experts), k, renormalize: true, scalingFactor: 1 }
        const router = createVectorOps(native).createRouter(spec)
        const [logits, chosen] = [new Float32Array(experts), new Int32Array(k)]
        return (weights: Float32Array) => {
          linear.apply(x, logits, 1)
          router.route(logits, chosen, weights, 1)
        }
      }
      return bindOp(row, { turns: Math.floor(trunk.bytes / bytes), calls: 1, length: k, make }, bench)
    }
    return { ...row, bind }
  })
}

/** Gate and up of the shared experts in one pass, SiTU-GLU, down. */
const sharedExperts = (sizes: BenchSizes, threads: number): Work => {
  const { num_shared_experts, moe_intermediate_size, hidden_size: hidden } = sizes.geometry
  const inner = num_shared_experts * moe_intermediate_size
  const matrix = 2 * inner * hidden
  const cost = { bytes: 3 * matrix, flops: 3 * matrix }
  const row = {
    name: 'shared-experts',
    mode: 'exact',
    cache: 'cold',
    threads,
    unit: 'GB/s',
    ...cost
  } as const
  const bind = (bench: Bench) => {
    const { trunk, x } = bench.operands
    const make = (native: Native, turn: number) => {
      const at = (i: number) => (3 * turn + i) * matrix
      const halves = [0, 1].map((i) => linearAt(bench, at(i), inner, hidden)(native))
      const gateUp = createLinearGroup(halves)
      const down = linearAt(bench, at(2), hidden, inner)(native)
      const ops = createVectorOps(native)
      const [gate, up] = [new Float32Array(inner), new Float32Array(inner)]
      return (y: Float32Array) => {
        gateUp.apply(x, [gate, up], 1)
        ops.situGlu(gate, up, BETAS, gate, inner)
        down.apply(gate, y, 1)
      }
    }
    const turns = Math.floor(trunk.bytes / (3 * matrix))
    return bindOp(row, { turns, calls: 1, length: hidden, make }, bench)
  }
  return { ...row, bind }
}
