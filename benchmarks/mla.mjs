// Decode attention of one layer of Kimi-K3 over caches of 1k, 8k and 32k positions, and a prompt of 64 tokens.
// The limit is the longer of reading the weights and the cache once, and of the multiply-adds.
//   node benchmarks/mla.mjs [rounds]
import { createMla, supportedIsas } from '../packages/mla/dist/index.js'
import { createPool } from '../packages/task-pool/dist/index.js'
import { bestLimits, machineLimits, machineLine } from './machine.mjs'
import { interleaved } from './rounds.mjs'

const rounds = Number(process.argv[2] ?? 15)
const shape = { heads: 96, nopeDim: 128, sharedKeyDim: 64, valueDim: 128, latentDim: 512, normEps: 1e-6 }
const rowLength = 576

const waves = (length, scale) => Float32Array.from({ length }, (_, i) => scale * Math.sin(0.7 * i + 0.3))
const bf16Waves = (length) =>
  Uint16Array.from(new Uint32Array(waves(length, 0.05).buffer), (word) => word >>> 16)
const parameters = { kvNorm: waves(512, 1), kvUp: bf16Waves(96 * 256 * 512) }

const caseOf = (mla, label, positions, tokens) => {
  const cache = mla.createCache()
  cache.reserve(positions + tokens)
  cache.rows.set(waves(positions * rowLength, 1))
  cache.advance(positions)
  const inputs = {
    queries: waves(tokens * 96 * 192, 1),
    kv: waves(tokens * rowLength, 1),
    gate: waves(tokens * 96 * 128, 1)
  }
  const out = new Float32Array(tokens * 96 * 128)
  const run = () => {
    mla.forward(inputs, cache, out, tokens)
    cache.truncate(positions)
  }
  const seen = tokens * (positions + (tokens + 1) / 2)
  const products = 96 * (tokens * 256 * 512 + seen * (rowLength + 512))
  return { name: label, run, products, bytes: 2 * 96 * 256 * 512 + 4 * positions * rowLength }
}

const pools = [1, 2].map((threads) => createPool({ threads }))
const cases = supportedIsas()
  .filter((isa) => isa !== 'scalar')
  .flatMap((isa) =>
    pools.flatMap((pool) => {
      const mla = createMla(shape, parameters, { isa, pool })
      const decode = [1024, 8192, 32768].map((positions) =>
        caseOf(mla, `mla-decode-${positions},${isa},${pool.threads}`, positions, 1)
      )
      return [...decode, caseOf(mla, `mla-prefill-64,${isa},${pool.threads}`, 0, 64)]
    })
  )

const before = machineLimits([1, 2])
const times = interleaved(cases, rounds)
const limits = bestLimits(before, machineLimits([1, 2]))
console.log(machineLine(limits))
console.log('work,isa,threads,median_ms,best_ms,limit_ms')
for (const [i, { name, median, best }] of times.entries()) {
  const { readGBs, fmaGFlops } = limits[Number(name.split(',')[2]) - 1]
  const limit = Math.max(cases[i].bytes / readGBs, (2 * cases[i].products) / fmaGFlops) / 1e6
  console.log([name, ...[median, best, limit].map((ms) => ms.toFixed(2))].join(','))
}
for (const pool of pools) pool.close()
