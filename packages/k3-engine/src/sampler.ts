import { AdjustedLogits } from './adjusted-logits.js'
import { K3Error } from './errors.js'
import type { Sampler } from './interfaces.js'
import { Random } from './random.js'
import { type CheckedSettings, checkSettings, type SamplerSettings } from './sampler-settings.js'
import { selectPrefix } from './select-prefix.js'
import { SoftmaxWeights } from './softmax-weights.js'

// Tokens less likely than the first by more than this are looked at only when the others do not suffice. Any value
// gives the same choices; with this one a few hundred of the released model's 163,840 tokens remain.
const LIKELY = 2 ** -14

/**
 * The position of the highest logit, the lowest one on ties.
 * @throws ERR_K3_LOGITS_NONFINITE when a logit is NaN or infinite
 */
export const argmax = (logits: Float32Array): number => {
  let best = 0
  let highest = Number.NEGATIVE_INFINITY
  for (let i = 0; i < logits.length; i++) {
    const value = logits[i]!
    if (!Number.isFinite(value)) throw nonFinite(i, value)
    if (value <= highest) continue
    highest = value
    best = i
  }
  return best
}

/**
 * A sampler for `generate`, seeded: one number u, a multiple of 2^-32, is drawn for each token, and the token is the
 * first, in order of falling probability (lowest id on ties), with which the cumulative probability reaches u + 2^-33.
 * At temperature 0 no number is drawn.
 * @throws ERR_K3_SAMPLER naming the setting that is unknown or out of its range; from `pick` for a bias of an id beyond
 * the vocabulary and for a mask that is too short
 * @throws ERR_K3_LOGITS_NONFINITE from `pick` when a logit is NaN or infinite
 * @throws ERR_K3_NO_TOKEN_ALLOWED from `pick` when biases and constraint leave no token
 */
export const createSampler = (settings: SamplerSettings): Sampler =>
  new SeededSampler(checkSettings(settings))

/** Always the highest logit. */
export const createGreedy = (): Sampler => createSampler({ temperature: 0, topP: 1, seed: 0n })

class SeededSampler implements Sampler {
  readonly #settings: CheckedSettings
  readonly #adjusted: AdjustedLogits
  readonly #random: Random
  #candidates = new Candidates(0)

  constructor(settings: CheckedSettings) {
    this.#settings = settings
    this.#adjusted = new AdjustedLogits(settings)
    this.#random = new Random(settings.seed)
  }

  begin(ids: ArrayLike<number>): void {
    this.#adjusted.begin(ids)
  }

  accept(id: number): void {
    this.#adjusted.accept(id)
  }

  pick(logits: Float32Array, allowed: Uint32Array | null): number {
    const highestRaw = argmax(logits)
    const z = this.#adjusted.apply(logits, allowed)
    const best = this.#adjusted.changes || allowed !== null ? highestAllowed(z) : highestRaw
    if (this.#settings.temperature === 0) return best
    if (this.#candidates.capacity !== z.length) this.#candidates = new Candidates(z.length)
    return this.#candidates.draw(z, z[best]!, this.#settings, this.#random.next() + 2 ** -33)
  }
}

/** The tokens that are still in the draw, and their weights exp((z - highest z) / temperature). */
class Candidates {
  readonly capacity: number
  readonly #order: Uint32Array
  readonly #softmax: SoftmaxWeights
  readonly #weights: Float64Array
  #length = 0
  /** the weight of all tokens that count, those of the tail included that are not in `#order` */
  #total = 0

  constructor(vocab: number) {
    this.capacity = vocab
    this.#order = new Uint32Array(vocab)
    this.#softmax = new SoftmaxWeights(vocab)
    this.#weights = this.#softmax.values
  }

  draw(z: Float64Array, best: number, settings: CheckedSettings, share: number): number {
    const { temperature, topK, topP, minP } = settings
    this.#total = this.#softmax.assign(z, best, temperature)
    this.#collect(minP > 0 ? Math.min(LIKELY, minP) : LIKELY)
    if (!this.#suffice(settings, share)) this.#collect(0)
    if (topK > 0) this.#keep(selectPrefix(this.#order, this.#length, z, null, topK))
    if (topP < 1) this.#keep(this.#select(z, topP))
    if (minP > 0) this.#keepAtLeast(minP)
    return this.#order[this.#select(z, share) - 1]!
  }

  /** Takes the tokens of at least this weight; those whose weight is 0 never. */
  #collect(least: number): void {
    const order = this.#order
    const weights = this.#weights
    const positive = Math.max(least, Number.MIN_VALUE)
    let length = 0
    for (let id = 0; id < weights.length; id++) {
      if (weights[id]! >= positive) order[length++] = id
    }
    this.#length = length
  }

  /** Whether what was collected is all that the settings and this draw can reach. */
  #suffice({ topK, topP, minP }: CheckedSettings, share: number): boolean {
    if (topK > 0) return this.#length >= topK
    if (topP === 1 && minP > 0) return true
    return this.#sum() >= (topP < 1 ? topP : share) * this.#total
  }

  #select(z: Float64Array, share: number): number {
    return selectPrefix(this.#order, this.#length, z, this.#weights, share * this.#total)
  }

  #keep(length: number): void {
    this.#length = length
    this.#total = this.#sum()
  }

  #keepAtLeast(weight: number): void {
    let kept = 0
    for (let i = 0; i < this.#length; i++) {
      const id = this.#order[i]!
      if (this.#weights[id]! >= weight) this.#order[kept++] = id
    }
    this.#keep(kept)
  }

  #sum(): number {
    const order = this.#order
    const weights = this.#weights
    let sum = 0
    for (let i = 0; i < this.#length; i++) sum += weights[order[i]!]!
    return sum
  }
}

const highestAllowed = (z: Float64Array): number => {
  let best = 0
  for (let id = 1; id < z.length; id++) if (z[id]! > z[best]!) best = id
  if (z[best] === Number.NEGATIVE_INFINITY) {
    const message = 'biases and constraint together forbid every token of the vocabulary'
    throw new K3Error('ERR_K3_NO_TOKEN_ALLOWED', message, { have: 0, need: 1 })
  }
  return best
}

const nonFinite = (id: number, value: number) =>
  new K3Error('ERR_K3_LOGITS_NONFINITE', `the logit of token ${id} is ${value}; the request ends here`, {
    have: value,
    need: 'finite logits'
  })
