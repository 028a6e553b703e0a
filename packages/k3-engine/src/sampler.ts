import { AdjustedLogits } from './adjusted-logits.js'
import { K3Error } from './errors.js'
import type { Sampler } from './interfaces.js'
import { Random } from './random.js'
import { type CheckedSettings, checkSettings, type SamplerSettings } from './sampler-settings.js'
import { selectPrefix } from './select-prefix.js'
import { type AdjustedStep, SoftmaxWeights } from './softmax-weights.js'
import { idsOfMask } from './token-mask.js'

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
  // 0 as long as all are finite, else NaN: cheaper than a question about each of them
  let check = 0
  for (let i = 0; i < logits.length; i++) {
    const value = logits[i]!
    check += value * 0
    if (value > highest) {
      highest = value
      best = i
    }
  }
  if (check === 0) return best
  const at = logits.findIndex((value) => !Number.isFinite(value))
  throw nonFinite(at, logits[at]!)
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
  /** where the ids that a mask allows are put together */
  #list = new Uint32Array(0)
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
    const { temperature } = this.#settings
    const isPlain = !this.#adjusted.changes && allowed === null
    if (isPlain && temperature === 0) return highestRaw
    if (this.#list.length !== logits.length) this.#list = new Uint32Array(logits.length)
    const ids = allowed === null ? null : idsOfMask(allowed, logits.length, this.#list)
    const z = this.#adjusted.apply(logits)
    const best = isPlain ? highestRaw : highestOf(z, ids)
    if (temperature === 0) return best
    if (this.#candidates.capacity !== z.length) this.#candidates = new Candidates(z.length)
    const share = this.#random.next() + 2 ** -33
    return this.#candidates.draw({ z, highest: z[best]!, ids }, this.#settings, share)
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
    this.#softmax = new SoftmaxWeights(vocab)
    this.#order = this.#softmax.order
    this.#weights = this.#softmax.values
  }

  draw(logits: AdjustedStep, settings: CheckedSettings, share: number): number {
    const { temperature, topK, topP, minP } = settings
    const { z } = logits
    this.#take(logits, temperature, minP > 0 ? Math.min(LIKELY, minP) : LIKELY)
    if (!this.#suffice(settings, share)) this.#take(logits, temperature, 0)
    if (topK > 0) this.#keep(selectPrefix(this.#order, this.#length, z, null, topK))
    if (topP < 1) this.#keep(this.#select(z, topP))
    if (minP > 0) this.#keepAtLeast(minP)
    return this.#order[this.#select(z, share) - 1]!
  }

  #take(logits: AdjustedStep, temperature: number, least: number): void {
    this.#total = this.#softmax.take(logits, temperature, least)
    this.#length = this.#softmax.count
  }

  /** Whether what was taken is all that the settings and this draw can reach. */
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

const highestOf = (z: Float64Array, ids: Uint32Array | null): number => {
  let best = 0
  let highest = Number.NEGATIVE_INFINITY
  const count = ids === null ? z.length : ids.length
  for (let i = 0; i < count; i++) {
    const id = ids === null ? i : ids[i]!
    if (z[id]! <= highest) continue
    highest = z[id]!
    best = id
  }
  if (highest > Number.NEGATIVE_INFINITY) return best
  const message = 'biases and constraint together forbid every token of the vocabulary'
  throw new K3Error('ERR_K3_NO_TOKEN_ALLOWED', message, { have: 0, need: 1 })
}

const nonFinite = (id: number, value: number) =>
  new K3Error('ERR_K3_LOGITS_NONFINITE', `the logit of token ${id} is ${value}; the request ends here`, {
    have: value,
    need: 'finite logits'
  })
