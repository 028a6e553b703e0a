// MXFP4 products: GB/s of packed weights and scales for one vector, GFLOP/s for many, and the experts of one token.
// Weights are cold: 64 matrices (374 MB) take turns. Medians and bests of interleaved rounds.
// Exact and with int8 activations, beside what this machine reads and multiplies at most.
//   node benchmarks/mxfp4.mjs [seconds] [file.csv]
import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { createExpertMlp, createMatrix, supportedIsas } from '../packages/mxfp4/dist/index.js'
import { createPool } from '../packages/task-pool/dist/index.js'
import { allocRegion } from '../packages/uring/dist/index.js'
import { machineLimits } from './machine.mjs'

const seconds = Number(process.argv[2] ?? 60)
const copies = 64
const [wide, narrow] = [3584, 3072]
const codeBytes = (wide * narrow) / 2
const scaleBytes = codeBytes / 16
const matrixBytes = codeBytes + scaleBytes

// memory like that of an expert cache
const region = allocRegion(copies * matrixBytes)
const weights = region.view(0, copies * matrixBytes)
const words = new Uint32Array(weights.buffer, weights.byteOffset, weights.length / 4)
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

// one for all products: a matrix that the product before has just read would come from cache
let turn = 0
const product = (rows, cols, tokens, threads, { isa = fastest, activations = 'exact' } = {}) => {
  const options = { isa, activations, pool: pools.get(threads) }
  const matrices = Array.from({ length: copies }, (_, m) => {
    const packed = { region, offset: m * matrixBytes }
    const scales = { region, offset: m * matrixBytes + codeBytes }
    return createMatrix({ packed, scales, rows, cols }, options)
  })
  return {
    work: tokens === 1 ? `matvec-${rows}x${cols}` : `gemm-${rows}x${cols}x${tokens}`,
    ...{ activations, isa, threads },
    bytes: matrixBytes,
    flops: 2 * tokens * rows * cols,
    run: () => {
      turn = (turn + 7) % copies
      matrices[turn].apply(x, out, tokens)
    }
  }
}

const experts = (count, tokens, threads, { isa = fastest, activations = 'exact' } = {}) => {
  const at = (i) => ({ packed: i * matrixBytes, scale: i * matrixBytes + codeBytes })
  const [w1, w2, w3] = [at(0), at(1), at(2)]
  const layout = { w1Packed: w1.packed, w1Scale: w1.scale, w2Packed: w2.packed, w2Scale: w2.scale }
  Object.assign(layout, { w3Packed: w3.packed, w3Scale: w3.scale })
  const spec = { latent: wide, inner: narrow, topK: count, beta: 4, linearBeta: 25, layout }
  const mlp = createExpertMlp(spec, region, { isa, activations, pool: pools.get(threads) })
  const pairs = count * tokens
  const starts = Int32Array.from({ length: count + 1 }, (_, e) => e * tokens)
  const bases = Float64Array.from({ length: count }, (_, e) => e * 3 * matrixBytes)
  const batch = { count, bases, starts, tokens: Int32Array.from({ length: pairs }, (_, p) => p % tokens) }
  const result = new Float32Array(pairs * wide)
  return {
    work: tokens === 1 ? `expert-mlp-${count}` : `expert-mlp-${count}x${tokens}`,
    ...{ activations, isa, threads },
    bytes: count * 3 * matrixBytes,
    flops: 6 * pairs * wide * narrow,
    run: () => mlp.apply(x, batch, result)
  }
}

const avx2 = supportedIsas().includes('avx2') && fastest !== 'avx2' ? [{ isa: 'avx2' }] : []
const int8 = { activations: 'int8' }
const limits = machineLimits([1, 2])
const rows = [
  product(narrow, wide, 1, 1, { isa: 'scalar' }),
  ...[1, 2].flatMap((threads) => [
    product(narrow, wide, 1, threads),
    product(wide, narrow, 1, threads),
    ...[2, 4, 8, 32, 64].map((tokens) => product(narrow, wide, tokens, threads)),
    experts(16, 1, threads),
    experts(16, 4, threads),
    product(narrow, wide, 1, threads, int8),
    product(wide, narrow, 1, threads, int8),
    ...[8, 64].map((tokens) => product(narrow, wide, tokens, threads, int8)),
    experts(16, 1, threads, int8),
    ...avx2.flatMap((choice) => [
      ...[1, 8, 64].map((tokens) => product(narrow, wide, tokens, threads, choice)),
      product(narrow, wide, 1, threads, { ...choice, ...int8 })
    ])
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

const cpu = cpus()[0]?.model ?? 'unknown'
const readGBs = (threads) => limits.find((limit) => limit.threads === threads).readGBs
const machine =
  `${availableParallelism()} x ${cpu}, Node ${process.versions.node}, reads ${readGBs(1)} GB/s on 1 thread, ` +
  `${readGBs(2)} on 2, ${times[0].length} rounds`
console.log(machine)
const csv = [
  `# ${machine}`,
  'work,activations,isa,threads,median GB/s,best GB/s,median GFLOP/s,best GFLOP/s,of read bandwidth'
]
rows.forEach(({ work, activations, isa, threads, bytes, flops }, i) => {
  const sorted = times[i].sort((a, b) => a - b)
  const [median, best] = [sorted[sorted.length >> 1], sorted[0]]
  const rates = [bytes, flops].flatMap((n) => [median, best].map((time) => n / time / 1e9))
  const share = rates[0] / readGBs(threads)
  csv.push(
    [work, activations, isa, threads, ...rates.map((rate) => rate.toFixed(2)), share.toFixed(2)].join()
  )
  const name = `${work} ${activations} ${isa} ${threads}T`.padEnd(40)
  const [medianGBs, bestGBs, medianGFlops, bestGFlops] = rates.map((rate) => rate.toFixed(1))
  console.log(`${name} median ${medianGBs} GB/s ${medianGFlops} GFLOP/s, best ${bestGBs} ${bestGFlops}`)
})
if (process.argv[3] !== undefined) writeFileSync(process.argv[3], `${csv.join('\n')}\n`)
for (const pool of pools.values()) pool.close()
