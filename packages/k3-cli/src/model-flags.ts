import { modelDir } from '@k3/demo-model'
import { type Model, type ModelOptions, openModel } from '@k3/engine'
import { type Command, Option } from 'commander'
import type { Output } from './output.js'
import { draftLength, threadCount, wholeNumber } from './parse-option.js'

/** Flags of every command that runs a model. */
export interface ModelFlags {
  readonly model?: string
  readonly threads?: number
  readonly isa?: NonNullable<ModelOptions['isa']>
  readonly cacheSlots?: number
  readonly chunkTokens?: number
  readonly layers?: number
  readonly trunk?: NonNullable<ModelOptions['trunk']>
  readonly lookahead?: number
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

/** Adds the flags that say how to compute and change no bit of the result. */
export const withRunFlags = (command: Command): Command =>
  command
    .option('--threads <n>', 'threads that compute (default: the CPUs available)', threadCount)
    .addOption(
      new Option('--isa <name>', 'instruction set').choices(['auto', 'scalar', 'avx2', 'avx512', 'neon'])
    )
    .option('--cache-slots <n>', 'experts kept in memory (default: what fits)', wholeNumber(1))
    .option(
      '--chunk-tokens <n>',
      'prompt tokens that go through a layer together (default: 64)',
      wholeNumber(1)
    )
    .addOption(
      new Option('--trunk <mode>', 'where the always-active weights lie (default: mmap)').choices([
        'resident',
        'mmap',
        'stream'
      ])
    )
    .option(
      '--lookahead <n>',
      'experts to predict for the next layer and read early (default: 0)',
      wholeNumber(0)
    )
    .addOption(new Option('--backend <name>', 'how shards are read').choices(['auto', 'io_uring', 'pread']))
    .addOption(new Option('--direct <mode>', 'past the page cache').choices(['auto', 'on', 'off']))

/** The engine's options for those flags; an absent one keeps the engine's default. */
export const modelOptions = (flags: ModelFlags): ModelOptions => {
  const { threads, isa, cacheSlots, chunkTokens, layers, trunk, lookahead, backend, direct } = flags
  const options = { threads, isa, cacheSlots, chunkTokens, layers, trunk, lookahead, backend, direct }
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

/** Opens the model the flags name, and says on stderr when it is the demo model. */
export const openFlagged = async (flags: ModelFlags, output: Output): Promise<Model> => {
  if (flags.model === undefined) output.note('k3: no --model given, this is the shipped demo model')
  output.progress('loading …')
  const model = await openModel(flags.model === undefined ? modelDir : flags.model, modelOptions(flags))
  for (const notice of model.notices) output.note(`k3: ${notice}`)
  return model
}
