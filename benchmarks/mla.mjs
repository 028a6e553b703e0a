// Decode attention of one layer of Kimi-K3 over caches of 1k, 8k and 32k positions, and a prompt of 64 tokens.
//   node benchmarks/mla.mjs [rounds]
import { createMla, supportedIsas } from '../packages/mla/dist/index.js'
import { createPool } from '../packages/task-pool/dist/index.js'
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
  return { name: label, run }
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

console.log('work,isa,threads,median_ms,best_ms')
for (const { name, median, best } of interleaved(cases, rounds)) {
  console.log(`${name},${median.toFixed(2)},${best.toFixed(2)}`)
}
for (const pool of pools) pool.close()
