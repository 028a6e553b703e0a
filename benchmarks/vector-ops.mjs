// The per-token equations of Kimi-K3 at their real sizes, for one token and for a chunk of 64: microseconds and GB/s of
// what is read and written. Medians and bests of interleaved rounds; data is warm, as it is between two layers.
//   node benchmarks/vector-ops.mjs [rounds]
import { createPool } from '../packages/task-pool/dist/index.js'
import { createVectorOps } from '../packages/vector-ops/dist/index.js'
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
      name: `${name} x${tokens} ${threads}T`,
      bytes: 4 * tokens * floats,
      run: () => {
        for (let i = 0; i < repeats; i++) call()
      }
    })
    return [
      row('rmsNorm 7168', 3 * hidden, () => ops.rmsNorm(sources[0], weight, eps, out, tokens)),
      row('residualMix 9 x 7168', 11 * hidden, () => ops.residualMix(sources, weight, eps, out, tokens)),
      row('add 7168', 3 * hidden, () => ops.add(sources[0], sources[1], out, tokens * hidden)),
      row('situGlu 6144', 3 * 6144, () => ops.situGlu(gate, up, betas, out, tokens * 6144)),
      row('situGlu 33792', 3 * 33792, () => ops.situGlu(gate, up, betas, out, tokens * 33792)),
      row('router 896 top 16', experts + 2 * k, () => router.route(gate, indices, out, tokens))
    ]
  })
})
for (const [i, { name, median, best }] of interleaved(cases, rounds).entries()) {
  const micros = (ms) => ((1000 * ms) / repeats).toFixed(2)
  const rate = ((cases[i].bytes * repeats) / best / 1e6).toFixed(1)
  console.log(`${name.padEnd(28)} median ${micros(median)} µs  best ${micros(best)} µs  ${rate} GB/s`)
}
process.exit(0)
