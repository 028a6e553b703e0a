import { randomBytes } from 'node:crypto'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { createSampler, type Sampler } from '@k3/engine'
import { UsageError } from './usage-error.js'

/** Flags that choose tokens. */
export interface SamplingFlags {
  readonly temperature?: number
  readonly topP?: number
  readonly seed?: bigint
}

/** The sampler and the seed it draws from; null when nothing is drawn. */
export interface ChosenSampler {
  readonly sampler: Sampler
  readonly seed: bigint | null
}

/**
 * Greedy unless a temperature above 0 is given. A seed that was not given is drawn, so that the run can report it.
 * @throws UsageError for a flag that would have no effect
 */
export const chooseSampler = ({ temperature = 0, topP, seed }: SamplingFlags): ChosenSampler => {
  if (temperature === 0) {
    if (topP !== undefined) throw new UsageError('--top-p has no effect without --temperature above 0')
    if (seed !== undefined) throw new UsageError('--seed has no effect without --temperature above 0')
    return { sampler: createSampler({ temperature, topP: 1, seed: 0n }), seed: null }
  }
  const drawn = seed === undefined ? randomBytes(8).readBigUInt64LE() : seed
  return {
    sampler: createSampler({ temperature, topP: topP === undefined ? 1 : topP, seed: drawn }),
    seed: drawn
  }
}

/** A file for the logits of the first step, created before anything runs: what cannot be written is known at once. */
export class LogitsDump implements Disposable {
  readonly #file: number
  #isWritten = false

  constructor(file: string) {
    this.#file = openSync(file, 'w')
  }

  /** The same sampler; the logits of its first call go to the file as raw little-endian float32. */
  tap(sampler: Sampler): Sampler {
    return {
      pick: (logits) => {
        if (!this.#isWritten)
          writeFileSync(this.#file, new Uint8Array(logits.buffer, logits.byteOffset, logits.byteLength))
        this.#isWritten = true
        return sampler.pick(logits)
      }
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#file)
  }
}
