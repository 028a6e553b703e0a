// MXFP4 products: GB/s of packed weights and scales for one vector, GFLOP/s for many, and the experts of one token.
// Weights are cold: 64 matrices (374 MB) take turns. Medians and bests of interleaved rounds.
//   node benchmarks/mxfp4.mjs [seconds]
import { availableParallelism } from 'node:os'
import { createExpertMlp, createMatrix, supportedIsas } from '../packages/mxfp4/dist/index.js'
import { createPool } from '../packages/task-pool/dist/index.js'

const seconds = Number(process.argv[2] ?? 60)
const copies = 64
const [wide, narrow] = [3584, 3072]
const codeBytes = (wide * narrow) / 2
const scaleBytes = codeBytes / 16
const matrixBytes = codeBytes + scaleBytes

const weights = new Uint8Array(copies * matrixBytes)
const words = new Uint32Array(weights.buffer)
for (let i = 0, state = 1; i < words.length; i++) words[i] = state = Math.imul(state, 1664525) + 1013904223
for (let m = 0; m < copies; m++) {
  const scales = weights.subarray(m * matrixBytes + codeBytes, (m + 1) * matrixBytes)
  scales.forEach((byte, i) => {
    scales[i] = 118 + (byte & 7)
  })
}
const x = Float32Array.from({ length: 64 * wide }, (_, i) => Math.sin(i) / 8)
const out = new Float32Array(64 * wide)
const fastest = supportedIsas().at(-1)
const pools = new Map([1, 2].map((threads) => [threads, createPool({ threads })]))

const product = (rows, cols, tokens, threads, isa) => {
  const options = { isa, pool: pools.get(threads) }
  const matrices = Array.from({ length: copies }, (_, m) => {
    const packed = weights.subarray(m * matrixBytes, m * matrixBytes + codeBytes)
    const scales = weights.subarray(m * matrixBytes + codeBytes, (m + 1) * matrixBytes)
    return createMatrix({ packed, scales, rows, cols }, options)
  })
  let turn = 0
  return {
    name: `${rows}x${cols} x${tokens} ${isa} ${threads}T`,
    bytes: matrixBytes,
    flops: 2 * tokens * rows * cols,
    run: () => {
      turn = (turn + 7) % copies
      matrices[turn].apply(x, out, tokens)
    }
  }
}

const experts = (count, tokens, threads) => {
  const at = (i) => ({ packed: i * matrixBytes, scale: i * matrixBytes + codeBytes })
  const [w1, w2, w3] = [at(0), at(1), at(2)]
  const layout = { w1Packed: w1.packed, w1Scale: w1.scale, w2Packed: w2.packed, w2Scale: w2.scale }
  Object.assign(layout, { w3Packed: w3.packed, w3Scale: w3.scale })
  const spec = { latent: wide, inner: narrow, topK: count, beta: 4, linearBeta: 25, layout }
  const mlp = createExpertMlp(spec, weights, { isa: fastest, pool: pools.get(threads) })
  const pairs = count * tokens
  const starts = Int32Array.from({ length: count + 1 }, (_, e) => e * tokens)
  const bases = Float64Array.from({ length: count }, (_, e) => e * 3 * matrixBytes)
  const batch = { count, bases, starts, tokens: Int32Array.from({ length: pairs }, (_, p) => p % tokens) }
  const result = new Float32Array(pairs * wide)
  return {
    name: `${count} experts x${tokens} ${fastest} ${threads}T`,
    bytes: count * 3 * matrixBytes,
    flops: 6 * pairs * wide * narrow,
    run: () => mlp.apply(x, batch, result)
  }
}

const rows = [
  product(narrow, wide, 1, 1, 'scalar'),
  ...[1, 2].flatMap((threads) => [
    product(narrow, wide, 1, threads, fastest),
    product(wide, narrow, 1, threads, fastest),
    ...[2, 4, 8, 32, 64].map((tokens) => product(narrow, wide, tokens, threads, fastest)),
    experts(16, 1, threads),
    experts(16, 4, threads)
  ])
]

const times = rows.map(() => [])
const end = performance.now() + seconds * 1000
while (performance.now() < end) {
  rows.forEach(({ run }, i) => {
    const start = performance.now()
    run()
    times[i].push((performance.now() - start) / 1000)
  })
}

console.log(`CPUs ${availableParallelism()}, Node ${process.versions.node}, ${times[0].length} rounds`)
rows.forEach(({ name, bytes, flops }, i) => {
  const sorted = times[i].sort((a, b) => a - b)
  const show = (time) => `${(bytes / time / 1e9).toFixed(2)} GB/s ${(flops / time / 1e9).toFixed(1)} GFLOP/s`
  console.log(`${name.padEnd(28)} median ${show(sorted[sorted.length >> 1])}, best ${show(sorted[0])}`)
})
for (const pool of pools.values()) pool.close()
