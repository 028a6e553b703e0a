import type { Command } from 'commander'
import { filePath, share, wholeNumber } from '../parse-option.js'
import { type CapacityFlags, ramList, slotList } from './capacities.js'

/** Flags of the commands that replay a trace. */
export interface ReplayFlags extends CapacityFlags {
  readonly pairs?: number
  readonly split: number
  readonly json?: true
}

/** Adds the flags that say what is replayed, at which sizes, and what of it is counted. */
export const withReplayFlags = (command: Command): Command =>
  command
    .argument(
      '<file>',
      'trace of k3 trace record, JSON lines, or bare pairs with --pairs; - for standard input'
    )
    .option('--slots <list>', 'cache sizes in experts, like 512,1024', slotList)
    .option('--ram <list>', 'cache sizes in GB, like 9,18,36', ramList)
    .option(
      '--config <file>',
      'config.json that says how large an expert is (default: what the trace says)',
      filePath
    )
    .option(
      '--pairs <k>',
      'the file is (layer, expert) pairs of int32, k for each token of a layer',
      wholeNumber(1)
    )
    .option('--split <share>', 'part of the trace after which the second figure is counted', share, 0.5)
    .option('--json', 'print one object')

/** What has to be known about the figures of these commands. */
export const SAMPLE_NOTE = `In-sample: the constants of next-use were chosen on the two traces of the k3 repository, the shared one of Kimi-K3 and
that of the demo model; on any other trace its figures are out of sample. The other policies have no constants to
choose. What next-use learns, it learns while it runs: "after" counts only what comes after the first part.`
