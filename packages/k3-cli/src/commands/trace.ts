import { Command } from 'commander'
import type { Terminal } from '../terminal.js'
import { compareTraceCommand } from './trace-compare.js'
import { recordTraceCommand } from './trace-record.js'
import { replayTraceCommand } from './trace-replay.js'

/** `k3 trace`: which experts were chosen, and what a cache would have made of it. */
export const traceCommand = (terminal: Terminal): Command =>
  new Command('trace')
    .description('record which experts a run chooses, and replay it through caches of any size and policy')
    .addCommand(recordTraceCommand(terminal))
    .addCommand(replayTraceCommand(terminal))
    .addCommand(compareTraceCommand(terminal))
    .addHelpText('after', '\nExample:\n  k3 trace record "Once upon a time" --out once.k3trace')
