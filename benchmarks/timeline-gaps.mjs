// What a time line of `k3 … --timeline FILE` says: how long reads were under way, how much of the computation ran under
// them, and the gaps in which the drive had nothing to read, with what ran meanwhile. From the first call to the last one;
// reads that were given up when the model was closed are not on a time line, so a run seems to end without any.
//   node benchmarks/timeline-gaps.mjs FILE [least gap in ms]
import { readFileSync } from 'node:fs'

const [file, least = '1'] = process.argv.slice(2)
const { traceEvents } = JSON.parse(readFileSync(file, 'utf8'))
const isWait = ({ name }) => name.endsWith('.wait') || name === 'embed.rows'

const spans = traceEvents.filter(({ ph }) => ph === 'X')
const begun = new Map(traceEvents.filter(({ ph }) => ph === 'b').map((event) => [event.id, event]))
const start = Math.min(...spans.map(({ ts }) => ts))
const end = Math.max(...spans.map(({ ts, dur }) => ts + dur))
const reads = traceEvents
  .filter(({ ph, ts }) => ph === 'e' && ts > start)
  .map(({ id, ts }) => ({ from: begun.get(id).ts, to: ts, bytes: begun.get(id).args.bytes }))
  .filter(({ from }) => from < end)

/** Intervals without overlaps, in order. */
const union = (intervals) => {
  const merged = []
  for (const { from, to } of [...intervals].sort((a, b) => a.from - b.from)) {
    const last = merged.at(-1)
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to)
    else merged.push({ from, to })
  }
  return merged
}
const lengthOf = (intervals) => intervals.reduce((sum, { from, to }) => sum + to - from, 0)
const common = (a, b) =>
  a.flatMap((x) =>
    b
      .map((y) => ({ from: Math.max(x.from, y.from), to: Math.min(x.to, y.to) }))
      .filter(({ from, to }) => from < to)
  )

const reading = union(reads.map(({ from, to }) => ({ from: Math.max(from, start), to: Math.min(to, end) })))
const computing = union(
  spans.filter((span) => !isWait(span)).map(({ ts, dur }) => ({ from: ts, to: ts + dur }))
)
const ms = (microseconds) => (microseconds / 1e3).toFixed(1)
const share = (part, whole) => `${((100 * part) / whole).toFixed(2)} %`

const bytes = reads.reduce((sum, read) => sum + read.bytes, 0)
console.log(`${ms(end - start)} ms, ${(bytes / 1e9).toFixed(3)} GB in ${reads.length} reads`)
console.log(
  `a read under way for ${ms(lengthOf(reading))} ms (${share(lengthOf(reading), end - start)}); ` +
    `computed for ${ms(lengthOf(computing))} ms, ${share(lengthOf(common(computing, reading)), lengthOf(computing))} of it under reads`
)
const edges = [{ to: start }, ...reading, { from: end }]
for (let i = 1; i < edges.length; i++) {
  const [from, to] = [edges[i - 1].to, edges[i].from]
  if (to - from < 1e3 * Number(least)) continue
  const meanwhile = spans
    .filter(({ ts, dur }) => ts < to && ts + dur > from)
    .map(({ name, args }) => `${name}@${args.layer}`)
  console.log(`gap of ${ms(to - from)} ms at ${ms(from - start)}: ${[...new Set(meanwhile)].join(' ')}`)
}
