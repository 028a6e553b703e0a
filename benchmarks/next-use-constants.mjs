// How much the constants of next-use matter, and how much it flatters it that they were chosen on two of these traces: every
// choice of a grid, replayed on each trace; a choice made on one is out of sample on the others.
// Usage: node benchmarks/next-use-constants.mjs EVIDENCE.k3trace (docs/EXPERT_CACHE.md says how that is recorded)
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { RoutingTrace, readTrace, replay } from '../packages/moe-cache/dist/traces.js'

const dist = new URL('../packages/moe-cache/dist/', import.meta.url)
const near = (file) => readFileSync(new URL(file, import.meta.url))
const MOST_RECORDS = 6000

const beginning = (trace) => {
  const part = new RoutingTrace(trace.topK)
  for (let i = 0; i < Math.min(MOST_RECORDS, trace.length); i++)
    part.record(trace.layerAt(i), Array.from(trace.expertsAt(i)))
  return part
}
const small = [24, 48, 72, 96, 144]
const traces = {
  'Kimi-K3': [
    RoutingTrace.fromPairs(near('../fixtures/traces/expert_trace.bin'), 16).lastSweepInDecodeOrder(),
    [512, 1025, 1481, 2051, 2962]
  ],
  demo: [
    beginning(RoutingTrace.fromJsonLines(near('../packages/demo-model/expert_trace.jsonl').toString())),
    small
  ],
  evidence: [beginning(readTrace(readFileSync(process.argv[2])).trace), small]
}

/** The replay of a copy of the package that has other constants. */
const withConstants = async (folder, constants) => {
  const copy = mkdtempSync(path.join(folder, 'copy-'))
  let left = constants.length
  for (const file of readdirSync(dist).filter((name) => name.endsWith('.js'))) {
    let text = readFileSync(new URL(file, dist), 'utf8')
    for (const [before, after] of constants) {
      if (before.test(text)) left--
      text = text.replace(before, after)
    }
    writeFileSync(path.join(copy, file), text)
  }
  if (left !== 0) throw new Error('a constant is no longer where it was')
  writeFileSync(path.join(copy, 'package.json'), '{"type":"module"}')
  return (await import(pathToFileURL(path.join(copy, 'traces.js')).href)).replay
}

const meansOf = (run) =>
  Object.values(traces).map(
    ([trace, sizes]) =>
      sizes.reduce((sum, slots) => sum + 100 * run(trace, { slots, policy: 'next-use' }).hitRate, 0) /
      sizes.length
  )

const folder = mkdtempSync(path.join(tmpdir(), 'next-use-'))
const rows = []
for (const decay of [0.6, 0.7, 0.8, 0.9, 0.95]) {
  for (const weight of [4, 16, 64]) {
    for (const passed of [1, 2, 4]) {
      const constants = [
        [/\bDECAY = [\d.]+/, `DECAY = ${decay}`],
        [/\bWEIGHT = \d+/, `WEIGHT = ${weight}`],
        [/\bshare \/ 2\b/, `share / ${passed}`]
      ]
      const means = meansOf(await withConstants(folder, constants))
      rows.push({ name: `decay ${decay}, weight ${weight}, passed over ${passed}`, means })
    }
  }
}
rmSync(folder, { recursive: true })

const shown = (means) =>
  Object.keys(traces)
    .map((name, i) => `${name} ${means[i].toFixed(2)}`)
    .join(', ')
console.log(`as shipped: ${shown(meansOf(replay))}`)
for (const [i, name] of Object.keys(traces).entries()) {
  const best = rows.reduce((one, other) => (other.means[i] > one.means[i] ? other : one))
  console.log(`best on ${name} (${best.name}): ${shown(best.means)}`)
}
console.log(
  `worst of ${rows.length}: ${shown(Object.keys(traces).map((_, i) => Math.min(...rows.map(({ means }) => means[i]))))}`
)
