import { randomBytes } from 'node:crypto'
import { createSampler, type Sampler } from '@k3/engine/sampling'
import type { Command } from 'commander'
import { decimal, seed, wholeNumber } from './parse-option.js'
import { UsageError } from './usage-error.js'
import { WholeFile } from './whole-file.js'

/** Flags that choose tokens. */
export interface SamplingFlags {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly minP?: number
  readonly repetitionPenalty?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly seed?: bigint
}

/** What holds where no flag says otherwise. */
export type SamplingDefaults = Required<Pick<SamplingFlags, 'temperature' | 'topP'>>

/** The sampler and what it was made of; the seed is null when nothing is drawn. */
export interface ChosenSampler extends SamplingDefaults {
  readonly sampler: Sampler
  readonly seed: bigint | null
}

/** Always the most probable token. */
export const GREEDY: SamplingDefaults = { temperature: 0, topP: 1 }

/** Adds the flags that choose tokens. */
export const withSamplingFlags = (command: Command, { temperature, topP }: SamplingDefaults): Command =>
  command
    .option('--temperature <t>', `0 always takes the most probable token (default: ${temperature})`, decimal)
    .option(
      '--top-p <p>',
      `sample among the most probable tokens that reach this sum (default: ${topP})`,
      decimal
    )
    .option(
      '--top-k <n>',
      'sample among this many of the most probable tokens (default: all)',
      wholeNumber(0)
    )
    .option('--min-p <p>', 'least probability as a share of the highest one (default: 0)', decimal)
    .option(
      '--repetition-penalty <r>',
      'above 1 makes tokens that occurred less likely (default: 1)',
      decimal
    )
    .option('--presence-penalty <p>', 'taken from logits of tokens that occurred (default: 0)', decimal)
    .option('--frequency-penalty <p>', 'the same, for each time they occurred (default: 0)', decimal)
    .option('--seed <n>', 'seed of the sampler (default: drawn, and reported)', seed)

/**
 * The sampler the flags ask for. A seed that was not given is drawn, so that the run can report it.
 * @throws UsageError for a flag that would have no effect
 */
export const chooseSampler = (
  { temperature, topP, seed, ...rest }: SamplingFlags,
  defaults: SamplingDefaults = GREEDY
): ChosenSampler => {
  const { topK, minP, repetitionPenalty, presencePenalty, frequencyPenalty } = rest
  const chosen = temperature === undefined ? defaults.temperature : temperature
  const given = { topK, minP, repetitionPenalty, presencePenalty, frequencyPenalty }
  const others = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  if (chosen === 0) {
    const idle = { '--top-p': topP, '--top-k': topK, '--min-p': minP, '--seed': seed }
    for (const [flag, value] of Object.entries(idle)) {
      if (value !== undefined) throw new UsageError(`${flag} has no effect without --temperature above 0`)
    }
    const sampler = createSampler({ ...others, temperature: 0, topP: 1, seed: 0n })
    return { sampler, seed: null, ...GREEDY }
  }
  const settings = {
    temperature: chosen,
    topP: topP === undefined ? defaults.topP : topP,
    seed: seed === undefined ? randomBytes(8).readBigUInt64LE() : seed
  }
  return { sampler: createSampler({ ...others, ...settings }), ...settings }
}

/** A file for the logits of the first step, raw little-endian float32. */
export class LogitsDump extends WholeFile {
  #isWritten = false

  /** The same sampler; the logits of its first call go to the file. */
  tap(sampler: Sampler): Sampler {
    return {
      begin: (ids) => sampler.begin(ids),
      accept: (id) => sampler.accept(id),
      pick: (logits, allowed) => {
        if (!this.#isWritten) this.write(new Uint8Array(logits.buffer, logits.byteOffset, logits.byteLength))
        this.#isWritten = true
        return sampler.pick(logits, allowed)
      }
    }
  }
}
