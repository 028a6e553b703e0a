import { createKda } from '@k3/kda'
import { createMla, type Mla, MlaCache } from '@k3/mla'
import { sameBits } from './errors.js'
import { waves } from './operands.js'
import type { BenchSizes } from './sizes.js'
import { type Bench, type Bound, bindOp, caches, inTurns, type Native, turnsFor, type Work } from './work.js'

// Heads of the latent attention the scalar kernel computes for the check: they do not depend on the others.
const CHECKED_HEADS = 2

/** One layer of delta attention for a token and for a chunk, one of latent attention over caches of several lengths. */
export const attentionWorks = (sizes: BenchSizes, threads: number): Work[] => [
  ...kdaWorks(sizes, threads, 1),
  ...kdaWorks(sizes, threads, sizes.prefill),
  ...sizes.positions.map((positions) => mlaDecode(sizes, threads, positions))
]

/** Memory of the states and caches that take turns, in bytes. */
export const attentionBytes = (sizes: BenchSizes): number => {
  const { kda_num_heads: heads, kda_head_dim: dim } = sizes.geometry
  const states = 4 * turnsFor(stateBytes(sizes), sizes) * stateBytes(sizes)
  const inputs = 2 * 4 * sizes.prefill * 5 * heads * dim
  return sizes.positions.reduce((sum, n) => sum + mlaTurns(sizes, n) * latentBytes(sizes, n), states + inputs)
}

const stateBytes = ({ geometry }: BenchSizes): number =>
  4 * geometry.kda_num_heads * geometry.kda_head_dim * geometry.kda_head_dim

const kdaWorks = (sizes: BenchSizes, threads: number, tokens: number): Work[] => {
  const { kda_num_heads: heads, kda_head_dim: dim } = sizes.geometry
  const name = tokens === 1 ? 'kda-step' : `kda-prefill-${tokens}`
  // one read and one write of the state; decay, two products with it and a rank-one update
  const bytes = 2 * stateBytes(sizes) + 4 * tokens * 6 * heads * dim
  const flops = 2 * 4 * tokens * heads * dim * dim
  return caches(stateBytes(sizes), sizes).map((cache) => {
    const row = { name, mode: 'exact', cache, threads, unit: 'ms', bytes, flops } as const
    return { ...row, bind: (bench) => bindKda(row, tokens, bench) }
  })
}

const bindKda = (row: Omit<Work, 'bind'>, tokens: number, bench: Bench): Bound => {
  const {
    kda_num_heads: heads,
    kda_head_dim: headDim,
    short_conv_kernel_size: convTaps
  } = bench.sizes.geometry
  const width = heads * headDim
  const rows = waves(tokens * width, 1)
  const inputs = { q: rows, k: rows, v: rows, decay: rows, gate: rows, beta: waves(tokens * heads, 1) }
  const conv = waves(width * convTaps, 0.5)
  const parameters = {
    qConv: conv,
    kConv: conv,
    vConv: conv,
    aLog: waves(heads, 1),
    dtBias: waves(width, 1),
    oNorm: waves(headDim, 1)
  }
  const shape = { heads, headDim, convTaps, gateLowerBound: -5, normEps: 1e-5 }
  const make = (native: Native) => {
    const kda = createKda(shape, parameters, native)
    const state = kda.createState()
    state.recurrence.fill(1e-3)
    return (out: Float32Array) => kda.forward(inputs, state, out, tokens)
  }
  const turns = turnsFor(stateBytes(bench.sizes), bench.sizes)
  return bindOp(row, { turns, calls: 1, length: tokens * width, make }, bench)
}

const latentBytes = ({ geometry }: BenchSizes, positions: number): number =>
  4 * (positions + 1) * (geometry.kv_lora_rank + geometry.qk_rope_head_dim)

/** Bytes of the matrix that latents are raised with. */
const upBytes = ({ geometry }: BenchSizes): number =>
  2 * geometry.num_attention_heads * (geometry.qk_nope_head_dim + geometry.v_head_dim) * geometry.kv_lora_rank

const mlaTurns = (sizes: BenchSizes, positions: number): number =>
  turnsFor(upBytes(sizes) + latentBytes(sizes, positions), sizes)

const mlaDecode = (sizes: BenchSizes, threads: number, positions: number): Work => {
  const { num_attention_heads: heads, kv_lora_rank: latent, qk_rope_head_dim: shared } = sizes.geometry
  const bytes = upBytes(sizes) + latentBytes(sizes, positions)
  const flops = upBytes(sizes) + 2 * heads * (positions + 1) * (2 * latent + shared)
  const row = {
    name: `mla-decode-${positions}`,
    mode: 'exact',
    cache: 'cold',
    threads,
    unit: 'ms',
    bytes,
    flops
  } as const
  return { ...row, bind: (bench) => bindMla(row, positions, bench) }
}

const bindMla = ({ name, cache, threads }: Omit<Work, 'bind'>, positions: number, bench: Bench): Bound => {
  const { sizes, operands } = bench
  const { kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, num_attention_heads } = sizes.geometry
  const kvNorm = waves(kv_lora_rank, 1)
  const inputs = { queries: operands.x, kv: operands.x, gate: operands.x }
  const mla = (native: Native, heads: number, turn: number): Mla => {
    const dims = { nopeDim: qk_nope_head_dim, sharedKeyDim: qk_rope_head_dim, valueDim: v_head_dim }
    const shape = { heads, ...dims, latentDim: kv_lora_rank, normEps: 1e-6 }
    const kvUp = { region: operands.trunk, offset: turn * upBytes(sizes) }
    return createMla(shape, { kvNorm, kvUp }, native)
  }
  const step = (op: Mla, out: Float32Array) => {
    const width = kv_lora_rank + qk_rope_head_dim
    const cached = new MlaCache(width, waves((positions + 1) * width, 1), positions)
    return () => {
      op.forward(inputs, cached, out, 1)
      cached.truncate(positions)
    }
  }
  const native = bench.native(threads)
  const run = inTurns(cache, mlaTurns(sizes, positions), (turn) =>
    step(mla(native, num_attention_heads, turn), operands.out)
  )
  const check = () => {
    const heads = Math.min(CHECKED_HEADS, num_attention_heads)
    const want = new Float32Array(heads * v_head_dim)
    step(mla(native, num_attention_heads, 0), operands.out)()
    step(mla(bench.scalar, heads, 0), want)()
    sameBits(name, operands.out, want)
  }
  return { run, overhead: null, calls: 1, check }
}
