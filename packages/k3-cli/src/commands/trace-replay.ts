import { type PolicyName, policyNames } from '@k3/moe-cache'
import { Command, Option } from 'commander'
import { table } from '../inspect/table.js'
import { Output } from '../output.js'
import type { Terminal } from '../terminal.js'
import { capacities } from '../trace/capacities.js'
import { BEST, type HitRate, hitRates, warmupRecords } from '../trace/hit-rates.js'
import { percent, rateObject, sizeCells } from '../trace/rate-cells.js'
import { readTraceFile } from '../trace/read-trace-file.js'
import { type ReplayFlags, SAMPLE_NOTE, withReplayFlags } from '../trace/replay-flags.js'

interface Flags extends ReplayFlags {
  readonly policy: PolicyName
  readonly perLayer?: true
}

/** `k3 trace replay`: what a cache of one policy would have hit. */
export const replayTraceCommand = (terminal: Terminal): Command =>
  withReplayFlags(
    new Command('replay').description(
      'replay a trace through caches of one policy, and hold them against the best'
    )
  )
    .addOption(new Option('--policy <name>', 'eviction policy').choices(policyNames).default('next-use'))
    .option('--per-layer', 'the hit rate of each layer as well')
    .addHelpText(
      'after',
      `\nExample:\n  k3 trace replay once.k3trace --slots 24,48 --per-layer\n\n${SAMPLE_NOTE}`
    )
    .action((file: string, flags: Flags) => run(file, flags, terminal))

const run = async (file: string, flags: Flags, terminal: Terminal): Promise<void> => {
  const { trace, expertBytes, notes } = await readTraceFile(file, flags.pairs, terminal)
  const sizes = await capacities(flags, expertBytes)
  const warmup = warmupRecords(trace, flags.split)
  const rates = hitRates(trace, sizes, [flags.policy], warmup)
  const output = new Output(terminal)
  for (const note of notes) output.note(`k3: ${note}`)
  if (flags.json !== undefined) {
    output.json({ records: trace.length, warmup_records: warmup, rates: rates.map(rateObject) })
    return
  }
  const head = ['slots', 'GB', 'policy', 'hits', 'misses', 'hit %', 'after %', 'of best %']
  output.answer(
    table(
      head,
      rates.map((rate) => row(rate, rates))
    )
  )
  if (flags.perLayer !== undefined) output.answer(`\n${layerTable(rates)}`)
}

const row = (rate: HitRate, rates: readonly HitRate[]): (string | number)[] => {
  const best = rates.find(({ policy, slots }) => policy === BEST && slots === rate.slots)!
  const shareOfBest = best.whole === 0 ? 1 : rate.whole / best.whole
  const counts = [rate.hits, rate.misses]
  return [
    ...sizeCells(rate),
    rate.policy,
    ...counts,
    percent(rate.whole),
    percent(rate.later),
    percent(shareOfBest)
  ]
}

const layerTable = (rates: readonly HitRate[]): string => {
  const head = ['layer', ...rates.map(({ policy, slots }) => `${policy} ${slots}`)]
  const rows = rates[0]!.layers.map(({ layer }, i) => [
    layer,
    ...rates.map(({ layers }) => percent(layers[i]!.hitRate))
  ])
  return table(head, rows)
}
