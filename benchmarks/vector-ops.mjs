// The per-token equations of Kimi-K3 at their real sizes, for one token and for a chunk of 64: microseconds, GB/s of what is
// read and written, and their part of the bandwidth of memory. Medians and bests of interleaved rounds; data is warm, as it
// is between two layers, so one token may well be faster than memory.
//   node benchmarks/vector-ops.mjs [rounds]
import { createPool } from '../packages/task-pool/dist/index.js'
import { createVectorOps } from '../packages/vector-ops/dist/index.js'
import { bestLimits, machineLimits, machineLine } from './machine.mjs'
import { interleaved } from './rounds.mjs'

const rounds = Number(process.argv[2] ?? 25)
const repeats = 20
const hidden = 7168
const experts = 896
const k = 16
const eps = 1e-5
const betas = { beta: 4, linearBeta: 25 }
const numbers = (length) => Float32Array.from({ length }, (_, i) => 3 * Math.sin(i * i))

const most = 64
const sources = Array.from({ length: 9 }, () => numbers(most * hidden))
const weight = numbers(hidden)
const out = new Float32Array(most * 33792)
const gate = numbers(most * 33792)
const up = numbers(most * 33792)
const indices = new Int32Array(most * k)

const cases = [1, 2].flatMap((threads) => {
  const ops = createVectorOps({ pool: createPool({ threads }) })
  const router = ops.createRouter({ bias: weight.slice(0, experts), k, renormalize: true, scalingFactor: 1 })
  return [1, most].flatMap((tokens) => {
    const row = (name, floats, call) => ({
      name: `${name},${tokens},${threads}`,
      threads,
      bytes: 4 * tokens * floats,
      run: () => {
        for (let i = 0; i < repeats; i++) call()
      }
    })
    return [
      row('rms-norm-7168', 3 * hidden, () => ops.rmsNorm(sources[0], weight, eps, out, tokens)),
      row('residual-mix-9x7168', 11 * hidden, () => ops.residualMix(sources, weight, eps, out, tokens)),
      row('add-7168', 3 * hidden, () => ops.add(sources[0], sources[1], out, tokens * hidden)),
      row('situ-glu-6144', 3 * 6144, () => ops.situGlu(gate, up, betas, out, tokens * 6144)),
      row('situ-glu-33792', 3 * 33792, () => ops.situGlu(gate, up, betas, out, tokens * 33792)),
      row('router-896-top-16', experts + 2 * k, () => router.route(gate, indices, out, tokens))
    ]
  })
})
const before = machineLimits([1, 2])
const times = interleaved(cases, rounds)
const limits = bestLimits(before, machineLimits([1, 2]))
console.log(machineLine(limits))
console.log('work,tokens,threads,median_us,best_us,median_GBs,fraction')
for (const [i, { name, median, best }] of times.entries()) {
  const micros = (ms) => ((1000 * ms) / repeats).toFixed(2)
  const rate = (cases[i].bytes * repeats) / median / 1e6
  const fraction = rate / limits[cases[i].threads - 1].updateGBs
  console.log([name, micros(median), micros(best), rate.toFixed(1), fraction.toFixed(2)].join(','))
}
process.exit(0)
