// What lookahead reads and wastes with each eviction policy, and how often it is right, token by token with the trunk in memory.
// Usage: node benchmarks/lookahead.mjs [MODEL [SLOTS [TOKENS]]] > benchmarks/results/lookahead.csv
import { readFileSync } from 'node:fs'
import { modelDir } from '../packages/demo-model/index.js'
import { openModel } from '../packages/k3-engine/dist/index.js'
import { policyNames } from '../packages/moe-cache/dist/index.js'

const [dir = modelDir, slots = '48,96', tokens = '300'] = process.argv.slice(2)
const text = readFileSync(new URL('../docs/spec/EVIDENCE.md', import.meta.url), 'utf8')
const PREDICTIONS = [0, 1, 2, 4, 8]

const percents = ({ predicted, chosen }) =>
  predicted.map((count, rank) => ((100 * chosen[rank]) / count).toFixed(1)).join(' ')

const idsFor = ({ tokenizer, config }) =>
  tokenizer === null
    ? Array.from({ length: Number(tokens) }, (_, i) => (6007 * i + 1000) % config.vocabSize)
    : tokenizer.encode(text).slice(0, Number(tokens))

const measure = async (policy, cacheSlots, lookahead) => {
  const parts = { policy }
  const model = await openModel(dir, { threads: 1, cacheSlots, lookahead, trunk: 'resident', parts })
  const ids = idsFor(model)
  const session = model.createSession()
  for (const id of ids) await session.step(id)
  const { traffic } = model
  await model[Symbol.asyncDispose]()
  return { ...traffic, count: ids.length }
}

console.log(
  'policy,slots,lookahead,hits %,expert MB a token,of it without lookahead,used reads,wasted reads,wasted MB a token,right by rank %'
)
for (const cacheSlots of slots.split(',').map(Number)) {
  for (const policy of policyNames) {
    let alone = 0
    for (const lookahead of PREDICTIONS) {
      const { hits, misses, bytesRead, lookahead: did, count } = await measure(policy, cacheSlots, lookahead)
      const megabytes = bytesRead / count / 1e6
      if (lookahead === 0) alone = megabytes
      const row = [
        policy,
        cacheSlots,
        lookahead,
        ((100 * hits) / (hits + misses)).toFixed(1),
        megabytes.toFixed(4)
      ]
      row.push((megabytes / alone).toFixed(3), did.usedReads, did.wastedReads)
      row.push((did.wastedBytes / count / 1e6).toFixed(4), percents(did))
      console.log(row.join(','))
    }
  }
}
