import { Command } from 'commander'
import type { Terminal } from '../terminal.js'
import { benchDecodeCommand } from './bench-decode.js'
import { benchKernelsCommand } from './bench-kernels.js'
import { benchStorageCommand } from './bench-storage.js'

/** `k3 bench`: what this machine can do, and how much of it is made use of. */
export const benchCommand = (terminal: Terminal): Command =>
  new Command('bench')
    .description('measure kernels, models and drives against the limits of this machine')
    .addCommand(benchKernelsCommand(terminal))
    .addCommand(benchDecodeCommand(terminal))
    .addCommand(benchStorageCommand(terminal))
