import { policyNames } from '@k3/moe-cache'
import { Command } from 'commander'
import { table } from '../inspect/table.js'
import { Output } from '../output.js'
import { keepApart } from '../output-files.js'
import { filePath } from '../parse-option.js'
import type { Terminal } from '../terminal.js'
import { type Capacity, capacities } from '../trace/capacities.js'
import { lineChart } from '../trace/chart.js'
import { BEST, type HitRate, hitRates, warmupRecords } from '../trace/hit-rates.js'
import { percent, rateObject, sizeCells } from '../trace/rate-cells.js'
import { readTraceFile } from '../trace/read-trace-file.js'
import { type ReplayFlags, SAMPLE_NOTE, withReplayFlags } from '../trace/replay-flags.js'
import { TraceOutput } from '../trace/trace-output.js'

interface Flags extends ReplayFlags {
  readonly svg?: string
}

type Figure = 'whole' | 'later'

const NAMES = [...policyNames, BEST] as const

/** `k3 trace compare`: every policy at every size. */
export const compareTraceCommand = (terminal: Terminal): Command =>
  withReplayFlags(
    new Command('compare').description('replay a trace through every policy, and hold them against the best')
  )
    .option('--svg <file>', 'draw hit rate over cache size', filePath)
    .addHelpText(
      'after',
      `\nExample:\n  k3 trace compare once.k3trace --ram 0.01,0.02 --svg once.svg\n\n${SAMPLE_NOTE}`
    )
    .action((file: string, flags: Flags) => run(file, flags, terminal))

const run = async (file: string, flags: Flags, terminal: Terminal): Promise<void> => {
  keepApart({ outputs: { '--svg': flags.svg }, inputs: { 'the argument': file } })
  using svg = flags.svg === undefined ? null : new TraceOutput(flags.svg)
  const { trace, expertBytes, notes } = await readTraceFile(file, flags.pairs, terminal)
  const sizes = await capacities(flags, expertBytes)
  const warmup = warmupRecords(trace, flags.split)
  const rates = hitRates(trace, sizes, policyNames, warmup)
  const output = new Output(terminal)
  for (const note of notes) output.note(`k3: ${note}`)
  svg?.write(drawn(rates, sizes))
  if (flags.json !== undefined) {
    output.json({ records: trace.length, warmup_records: warmup, rates: rates.map(rateObject) })
    return
  }
  output.answer(`hits in %, the whole trace\n${rateTable(rates, sizes, 'whole')}\n`)
  output.answer(
    `hits in %, after the first ${warmup} of ${trace.length} records\n${rateTable(rates, sizes, 'later')}\n`
  )
  output.answer(`${SAMPLE_NOTE}\n`)
}

const rateTable = (rates: readonly HitRate[], sizes: readonly Capacity[], figure: Figure): string => {
  const rows = sizes.map((size) => {
    const at = rates.filter(({ slots }) => slots === size.slots)
    const rateOf = (name: string): number => at.find(({ policy }) => policy === name)![figure]
    const best = policyNames.reduce((a, b) => (rateOf(b) > rateOf(a) ? b : a))
    const share = rateOf(BEST) === 0 ? 1 : rateOf(best) / rateOf(BEST)
    return [...sizeCells(size), ...NAMES.map((name) => percent(rateOf(name))), best, percent(share)]
  })
  return table(['slots', 'GB', ...NAMES, 'best policy', 'of best %'], rows)
}

const drawn = (rates: readonly HitRate[], sizes: readonly Capacity[]): string => {
  const inBytes = sizes.every(({ bytes }) => bytes >= 1e9)
  const lines = NAMES.map((name) => ({
    name,
    points: rates
      .filter(({ policy }) => policy === name)
      .map(({ slots, bytes, whole }) => ({ x: inBytes ? bytes / 1e9 : slots, y: 100 * whole }))
      .sort((a, b) => a.x - b.x)
  }))
  const labels = {
    title: 'Expert cache: hits by policy',
    x: inBytes ? 'cache in GB' : 'cache in experts',
    y: 'hits in %'
  }
  return lineChart(lines, labels)
}
