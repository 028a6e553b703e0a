// One layer of Kimi-K3's delta attention, state cold: the states that take turns are larger than any cache.
// The limit of a step is one read and one write of the state at the machine's rate of updates in place.
//   node benchmarks/kda.mjs [rounds]
import { createKda, supportedIsas } from '../packages/kda/dist/index.js'
import { createPool } from '../packages/task-pool/dist/index.js'
import { bestLimits, machineLimits, machineLine } from './machine.mjs'
import { interleaved } from './rounds.mjs'

const rounds = Number(process.argv[2] ?? 30)
const heads = 96
const headDim = 128
const width = heads * headDim
const shape = { heads, headDim, convTaps: 4, gateLowerBound: -5, normEps: 1e-5 }
const states = 20

const waves = (length, scale) => Float32Array.from({ length }, (_, i) => scale * Math.sin(0.7 * i + 0.3))
const parameters = {
  qConv: waves(4 * width, 0.5),
  kConv: waves(4 * width, 0.5),
  vConv: waves(4 * width, 0.5),
  aLog: waves(heads, 1),
  dtBias: waves(width, 1),
  oNorm: waves(headDim, 1)
}
const inputsOf = (tokens) => {
  const row = () => waves(tokens * width, 1)
  return { q: row(), k: row(), v: row(), decay: row(), gate: row(), beta: waves(tokens * heads, 1) }
}

const pools = [1, 2].map((threads) => createPool({ threads }))
const cases = supportedIsas()
  .filter((isa) => isa !== 'scalar')
  .flatMap((isa) =>
    pools.flatMap((pool) => {
      const kda = createKda(shape, parameters, { isa, pool })
      const turns = Array.from({ length: states }, () => kda.createState())
      for (const state of turns) state.recurrence.fill(1e-3)
      return [1, 64].map((tokens) => {
        const inputs = inputsOf(tokens)
        const out = new Float32Array(tokens * width)
        let turn = 0
        const run = () => kda.forward(inputs, turns[turn++ % states], out, tokens)
        const work = tokens === 1 ? 'kda-step' : 'kda-prefill-64'
        return { name: `${work},${isa},${pool.threads}`, tokens, threads: pool.threads, run }
      })
    })
  )

const before = machineLimits([1, 2])
const times = interleaved(cases, rounds)
const limits = bestLimits(before, machineLimits([1, 2]))
console.log(machineLine(limits))
console.log('work,isa,threads,median_ms,best_ms,limit_ms')
// per token and number of S: a decay and three fused multiply-adds, at half a fused multiply-add's two operations each
const matrices = heads * headDim * headDim
for (const [i, { name, median, best }] of times.entries()) {
  const { updateGBs, fmaGFlops } = limits[cases[i].threads - 1]
  const moved = (8 * matrices) / updateGBs / 1e6
  const limit = Math.max(moved, (cases[i].tokens * 8 * matrices) / fmaGFlops / 1e6)
  console.log([name, ...[median, best, limit].map((ms) => ms.toFixed(3))].join(','))
}
for (const pool of pools) pool.close()
