// bf16 matrix products of Kimi-K3 against what the machine can read and multiply, measured in the same minute. Weights are
// cold: parts of 2.3 GB take turns. Medians and bests of interleaved rounds.
//   node benchmarks/bf16-linear.mjs [rounds]
import { createLinear, supportedIsas } from '../packages/bf16-linear/dist/index.js'
import { createPool } from '../packages/task-pool/dist/index.js'
import { allocRegion } from '../packages/uring/dist/index.js'
import { bestLimits, machineLimits, machineLine } from './machine.mjs'
import { interleaved } from './rounds.mjs'

const rounds = Number(process.argv[2] ?? 7)
const cols = 7168
const headRows = 163840
const rows = 12288
const region = allocRegion(2 * headRows * cols)
for (let at = 0; at < region.bytes; at += 2 ** 30) {
  const view = region.view(at, Math.min(2 ** 30, region.bytes - at))
  new Uint16Array(view.buffer, view.byteOffset, view.byteLength / 2).fill(0x3f81)
}
const x = Float32Array.from({ length: 64 * cols }, (_, i) => Math.sin(i))
const out = new Float32Array(Math.max(headRows, 64 * rows))

const threadCounts = [1, 2]
const pools = new Map(threadCounts.map((threads) => [threads, createPool({ threads })]))
const isas = supportedIsas().filter((isa) => isa !== 'scalar')

const product = (shape, tokens, isa, threads) => {
  const bytes = 2 * shape * cols
  const parts = Math.floor(region.bytes / bytes)
  const options = { isa, pool: pools.get(threads) }
  const linears = Array.from({ length: parts }, (_, part) =>
    createLinear({ weights: { region, offset: part * bytes }, rows: shape, cols }, options)
  )
  let turn = 0
  return {
    name: `${tokens === 1 ? 'bf16-matvec' : 'bf16-gemm'}-${shape}x${cols}x${tokens},${isa},${threads}`,
    bytes,
    flops: shape * cols * 2 * tokens,
    threads,
    run: () => {
      turn = (turn + 5) % parts
      linears[turn].apply(x, out, tokens)
    }
  }
}

const cases = threadCounts.flatMap((threads) =>
  isas.flatMap((isa) => [
    product(headRows, 1, isa, threads),
    ...[1, 2, 4, 8, 16, 64].map((tokens) => product(rows, tokens, isa, threads))
  ])
)
const before = machineLimits(threadCounts)
const times = interleaved(cases, rounds)
const after = machineLimits(threadCounts)
const limits = bestLimits(before, after)
console.log(machineLine(limits))
console.log('work,isa,threads,unit,median,best,limit,fraction')
for (const [i, { name, bytes, flops, threads }] of cases.entries()) {
  const { median, best } = times[i]
  const limit = limits.find((row) => row.threads === threads)
  const [rate, bound, unit] = name.includes('x1,')
    ? [bytes, limit.readGBs, 'GB/s']
    : [flops, limit.fmaGFlops, 'GFLOP/s']
  const [usual, top] = [median, best].map((ms) => rate / ms / 1e6)
  const figures = [usual.toFixed(1), top.toFixed(1), bound.toFixed(1), (usual / bound).toFixed(2)]
  console.log([name, unit, ...figures].join(','))
}
for (const pool of pools.values()) pool.close()
region.close()
