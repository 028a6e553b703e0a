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
export const SAMPLE_NOTE =
  'next-use learns while it runs, and its constants were chosen on the two traces of the k3 repository (the shared\n' +
  'Kimi-K3 trace and the demo trace): on those its figures are in-sample. The others have nothing to tune. "after"\n' +
  'counts only what comes after the first part of the trace, which every policy has seen by then.'
