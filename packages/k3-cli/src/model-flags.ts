import { modelDir } from '@k3/demo-model'
import { type Model, type ModelOptions, openModel } from '@k3/engine'
import { type PolicyName, policyNames } from '@k3/moe-cache'
import { type Command, Option } from 'commander'
import type { Output } from './output.js'
import { draftLength, filePath, ramSize, threadCount, wholeNumber } from './parse-option.js'
import { memoryNote } from './plan/plan-text.js'

/** Flags of every command that runs a model. */
export interface ModelFlags {
  readonly model?: string
  readonly threads?: number
  readonly isa?: NonNullable<ModelOptions['isa']>
  readonly ram?: NonNullable<ModelOptions['ram']>
  readonly context?: number
  readonly cacheSlots?: number
  readonly policy?: PolicyName
  readonly chunkTokens?: number
  readonly layers?: number
  readonly fastExperts?: true
  readonly trunk?: NonNullable<ModelOptions['trunk']>
  readonly numa?: NonNullable<ModelOptions['numa']>
  readonly lookahead?: number
  readonly also?: readonly string[]
  readonly backend?: NonNullable<ModelOptions['backend']>
  readonly direct?: NonNullable<ModelOptions['direct']>
}

/** A flag of the commands that generate tokens. */
export interface SpeculationFlag {
  readonly spec?: number | 'auto'
}

/** Adds the flag that drafts tokens; what comes out is the same without it. */
export const withSpeculationFlag = (command: Command): Command =>
  command.option(
    '--spec <n>',
    'draft up to n tokens from repetitions and verify them in one pass; auto: as many as get accepted (default: none)',
    draftLength
  )

/** Adds the flags a memory plan depends on. */
export const withMemoryFlags = (command: Command): Command =>
  command
    .option('--threads <n>', 'threads that compute (default: the CPUs available)', threadCount)
    .option(
      '--ram <size>',
      'memory of the whole process: 8GB, 7.5GiB, auto, max, laptop (8 GB), desktop (32), workstation (64), ' +
        'workstation-96, server (128) (default: auto)',
      ramSize
    )
    .option('--context <n>', 'tokens a sequence may have (default: by --ram)', wholeNumber(1))
    .option('--cache-slots <n>', 'experts kept in memory (default: what fits)', wholeNumber(1))
    .addOption(
      new Option('--policy <name>', 'which expert gives up its place (default: next-use)').choices(
        policyNames
      )
    )
    .option(
      '--chunk-tokens <n>',
      'prompt tokens that go through a layer together (default: by --ram)',
      wholeNumber(1)
    )
    .addOption(
      new Option('--trunk <mode>', 'where the always-active weights lie (default: by --ram)').choices([
        'resident',
        'mmap',
        'stream'
      ])
    )

/** Adds the flags that say how to compute and change no bit of the result. */
export const withRunFlags = (command: Command): Command =>
  withMemoryFlags(command)
    .addOption(
      new Option('--isa <name>', 'instruction set').choices(['auto', 'scalar', 'avx2', 'avx512', 'neon'])
    )
    .option(
      '--lookahead <n>',
      'experts to predict for the next layer and read early (default: 0)',
      wholeNumber(0)
    )
    .option(
      '--also <dir>',
      'a folder with more shards, or copies of them on another drive; may be given again',
      (dir: string, before: readonly string[] = []) => [...before, filePath(dir)]
    )
    .addOption(
      new Option('--numa <where>', 'near the thread, or from all nodes in turn (default: auto)').choices([
        'auto',
        'local',
        'interleave'
      ])
    )
    .addOption(new Option('--backend <name>', 'how shards are read').choices(['auto', 'io_uring', 'pread']))
    .addOption(new Option('--direct <mode>', 'past the page cache').choices(['auto', 'on', 'off']))

/** Adds the flag that trades exactness of the routed experts for speed. */
export const withFastExpertsFlag = (command: Command): Command =>
  command.option('--fast-experts', 'routed experts with inputs in 8 bits: faster, and an approximation')

/** The engine's options for those flags; an absent one keeps the engine's default. */
export const modelOptions = (flags: ModelFlags & SpeculationFlag): ModelOptions => {
  const { threads, isa, ram, cacheSlots, chunkTokens, layers, trunk, lookahead, also, backend, direct } =
    flags
  const options = {
    ...{ threads, isa, ram, cacheSlots, chunkTokens, layers, trunk, lookahead, also, backend, direct },
    contextTokens: flags.context,
    numa: flags.numa,
    expertActivations: flags.fastExperts === true ? ('int8' as const) : undefined,
    speculates: flags.spec === undefined ? undefined : true,
    parts: flags.policy === undefined ? undefined : { policy: flags.policy }
  }
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

/** Where the files of that model lie. */
export const modelFolders = ({ model = modelDir, also = [] }: ModelFlags): string[] => [model, ...also]

/** Opens the model the flags name, says on stderr when it is the demo model, and where its memory goes. */
export const openFlagged = async (
  flags: ModelFlags & SpeculationFlag,
  output: Output,
  more: Pick<ModelOptions, 'prefixCacheBytes' | 'onSpan' | 'onRead' | 'parts'> = {}
): Promise<Model> => {
  if (flags.model === undefined) output.note('k3: no --model given, this is the shipped demo model')
  output.progress('loading …')
  const dir = flags.model === undefined ? modelDir : flags.model
  const options = modelOptions(flags)
  const model = await openModel(dir, { ...options, ...more, parts: { ...options.parts, ...more.parts } })
  for (const notice of model.notices) output.note(`k3: ${notice}`)
  output.note(`k3: ${memoryNote(model.memory)}`)
  if (model.expertActivations !== 'exact')
    output.note(`k3: --fast-experts: inputs of routed experts in 8 bits; the logits are an approximation`)
  return model
}
