import { K3Error } from './errors.js'
import type { GenerationRequest } from './generation-request.js'
import type { Sampler, TokenConstraint } from './interfaces.js'
import { logprobsOf, type TokenLogprobs } from './logprobs.js'
import { createGreedy } from './sampler.js'

/** Sampler and constraint of one generation, and the log-probabilities of what they chose. */
export class TokenChoice {
  /** One entry a token; null when the request asked for none. */
  readonly logprobs: TokenLogprobs[] | null
  readonly #sampler: Sampler
  readonly #constraint: TokenConstraint | undefined
  readonly #best: number

  /** A sampler is the caller's code: what it picks is checked before it becomes part of the answer. */
  constructor({ sampler, constraint, logprobs }: GenerationRequest, context: ArrayLike<number>) {
    this.#sampler = sampler === undefined ? createGreedy() : sampler
    this.#constraint = constraint
    this.logprobs = logprobs === undefined ? null : []
    this.#best = logprobs === undefined ? 0 : logprobs
    this.#sampler.begin(context)
  }

  /** The entry of the last token; null when the request asked for none. */
  get latest(): TokenLogprobs | null {
    return this.logprobs === null ? null : this.logprobs.at(-1)!
  }

  /** The next token of the sequence, which sampler and constraint are told. logits: f32 [vocab] */
  next(logits: Float32Array): number {
    const allowed = this.#constraint === undefined ? null : this.#constraint.mask()
    const id = this.#sampler.pick(logits, allowed)
    if (!Number.isInteger(id) || id < 0 || id >= logits.length) {
      const message = `the sampler picked ${String(id)}; ids are whole numbers below ${logits.length}`
      throw new K3Error('ERR_K3_TOKEN_ID', message, { have: id, need: logits.length - 1 })
    }
    if (allowed !== null && ((allowed[id >>> 5]! >>> (id & 31)) & 1) === 0) {
      const message = `the sampler picked ${id}, which the constraint does not allow`
      throw new K3Error('ERR_K3_SAMPLER', message, { field: 'sampler', have: id, need: 'an allowed id' })
    }
    this.#sampler.accept(id)
    this.#constraint?.accept(id)
    this.logprobs?.push(logprobsOf(logits, id, this.#best))
    return id
  }
}
