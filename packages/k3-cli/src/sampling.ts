import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import path from 'node:path'
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

/**
 * A file for the logits of the first step. It is opened before anything runs, so that what cannot be written is known at
 * once, and has its name only when it is whole; a device or a pipe is written as it is.
 */
export class LogitsDump implements Disposable {
  readonly #file: string
  readonly #temporary: string
  readonly #descriptor: number
  #isWritten = false

  /** @throws the error of the system when the file cannot be written */
  constructor(file: string) {
    try {
      const exists = existsSync(file)
      const isFile = !exists || statSync(file).isFile()
      this.#file = exists && isFile ? realpathSync(file) : file
      this.#temporary = isFile
        ? path.join(path.dirname(this.#file), `.${path.basename(this.#file)}.part`)
        : this.#file
      this.#descriptor = openSync(this.#temporary, 'w')
    } catch (cause) {
      const { code, message } = cause as NodeJS.ErrnoException
      throw Object.assign(new Error(`${file} cannot be written: ${message}`, { cause }), { code })
    }
  }

  /** The same sampler; the logits of its first call go to the file as raw little-endian float32. */
  tap(sampler: Sampler): Sampler {
    return {
      pick: (logits) => {
        if (!this.#isWritten) this.#write(new Uint8Array(logits.buffer, logits.byteOffset, logits.byteLength))
        return sampler.pick(logits)
      }
    }
  }

  #write(bytes: Uint8Array): void {
    writeFileSync(this.#descriptor, bytes)
    if (this.#temporary !== this.#file) renameSync(this.#temporary, this.#file)
    this.#isWritten = true
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor)
    if (!this.#isWritten && this.#temporary !== this.#file) rmSync(this.#temporary, { force: true })
  }
}
