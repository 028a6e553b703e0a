import { availableParallelism } from 'node:os'
import path from 'node:path'
import type { K3Config } from '@k3/engine/checkpoint'
import { parseConfig } from '@k3/engine/checkpoint'
import { ASSUMED_SPEED, type Machine, openRequest, planMemory, readMemory } from '@k3/engine/memory'
import { configText, geometryOf } from '@k3/synth'
import { Command, Option } from 'commander'
import { readConfig } from '../inspect/config-file.js'
import {
  type ModelFlags,
  type SpeculationFlag,
  withMemoryFlags,
  withSpeculationFlag
} from '../model-flags.js'
import { Output } from '../output.js'
import { filePath, gigabytes, gigabytesPerSecond } from '../parse-option.js'
import { planObject, planText } from '../plan/plan-text.js'
import type { Terminal } from '../terminal.js'
import { UsageError } from '../usage-error.js'

interface PlanFlags extends ModelFlags, SpeculationFlag {
  readonly config?: string
  readonly prefixCache: number
  readonly diskGbs: number
  readonly memoryGbs: number
  readonly json?: true
}

/** `k3 plan`: where the memory of a model would go, and how fast that would be; needs no weights. */
export const planCommand = (terminal: Terminal): Command =>
  withSpeculationFlag(
    withMemoryFlags(
      new Command('plan')
        .description(
          'show where the memory of a model goes and how fast that is; reads its config.json alone'
        )
        .option('--model <dir>', 'checkpoint folder (default: Kimi-K3 as released)', filePath)
        .option('--config <file>', 'one config.json', filePath)
    )
  )
    .addOption(
      new Option('--prefix-cache <gb>', 'memory set aside as k3 chat does')
        .argParser(gigabytes)
        .default(0, '0')
    )
    .option(
      '--disk-gbs <n>',
      'GB/s of large reads: the last line of k3 bench storage',
      gigabytesPerSecond,
      ASSUMED_SPEED.diskGBs
    )
    .option('--memory-gbs <n>', 'GB/s of reads from memory', gigabytesPerSecond, ASSUMED_SPEED.memoryGBs)
    .option('--json', 'print one object')
    .addHelpText('after', EXAMPLE)
    .action((flags: PlanFlags) => run(flags, terminal))

const EXAMPLE = `
Example:
  k3 plan --ram laptop --disk-gbs 3.2

A size or a preset is planned for as if the machine had it. A budget that cannot work is refused with the smallest one
that can, and exit code 4.`

const run = async (flags: PlanFlags, terminal: Terminal): Promise<void> => {
  const output = new Output(terminal)
  const { ram = 'auto', threads = availableParallelism(), context = null } = flags
  const { cacheSlots = null, chunkTokens = null, trunk = null } = flags
  const config = await configOf(flags)
  if (context !== null && context > config.contextLength)
    throw new UsageError(`--context is ${context}, the model has ${config.contextLength}`)
  const plan = planMemory(config, machineOf(flags, ram === 'auto' || ram === 'max'), {
    ...openRequest(config),
    ...{ ram, threads, cacheSlots, chunkTokens, trunk },
    ...(flags.policy === undefined ? {} : { policy: flags.policy }),
    contextTokens: context,
    prefixCacheBytes: flags.prefixCache,
    speculates: flags.spec !== undefined
  })
  if (flags.json === true) output.json({ ok: true, ...planObject(plan) })
  else output.answer(planText(plan))
}

const configOf = async ({ model, config }: PlanFlags): Promise<K3Config> => {
  if (model !== undefined && config !== undefined)
    throw new UsageError('--model and --config exclude each other')
  if (model !== undefined) return readConfig(path.join(model, 'config.json'))
  if (config !== undefined) return readConfig(config)
  return parseConfig(configText(geometryOf('full')), 'the released configuration')
}

/** This machine; for a budget in figures, one that has them, whatever this one has. */
const machineOf = ({ diskGbs, memoryGbs }: PlanFlags, isThisOne: boolean): Machine => {
  const { usableBytes, source } = readMemory()
  const bytes = isThisOne ? usableBytes : Number.MAX_SAFE_INTEGER
  return { ...ASSUMED_SPEED, diskGBs: diskGbs, memoryGBs: memoryGbs, usable: { bytes, source } }
}
