import { type CheckedSettings, settingOutOfRange } from './sampler-settings.js'

/** The logits of a step after penalties, bias and constraint: formulas and order are those of `SamplerSettings`. */
export class AdjustedLogits {
  readonly #settings: CheckedSettings
  readonly #penalises: boolean
  /** Whether the settings alone can make another token the highest. */
  readonly changes: boolean
  readonly #counts = new Map<number, number>()
  #values = new Float64Array(0)

  constructor(settings: CheckedSettings) {
    const { repetitionPenalty, presencePenalty, frequencyPenalty } = settings
    this.#settings = settings
    this.#penalises = repetitionPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0
    this.changes = this.#penalises || settings.logitBias.length > 0
  }

  /** Forgets the sequence before. */
  begin(ids: ArrayLike<number>): void {
    this.#counts.clear()
    for (let i = 0; i < ids.length; i++) this.accept(ids[i]!)
  }

  /** Counts a token of the sequence. */
  accept(id: number): void {
    if (!this.#penalises) return
    const count = this.#counts.get(id)
    this.#counts.set(id, count === undefined ? 1 : count + 1)
  }

  /** logits: f32 [vocab]. Returns f64 [vocab], overwritten by the next call; -Infinity is what is not allowed. */
  apply(logits: Float32Array, allowed: Uint32Array | null): Float64Array {
    if (this.#values.length !== logits.length) this.#values = new Float64Array(logits.length)
    const z = this.#values
    z.set(logits)
    if (this.#penalises) this.#penalise(z)
    for (const [id, bias] of this.#settings.logitBias) {
      if (id >= z.length) throw settingOutOfRange('logitBias', `keyed by ids below ${z.length}`, id)
      z[id]! += bias
    }
    if (allowed !== null) forbid(z, allowed)
    return z
  }

  #penalise(z: Float64Array): void {
    const { repetitionPenalty, presencePenalty, frequencyPenalty } = this.#settings
    for (const [id, count] of this.#counts) {
      const logit = z[id]!
      const repeated = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty
      z[id] = repeated - presencePenalty - count * frequencyPenalty
    }
  }
}

const forbid = (z: Float64Array, allowed: Uint32Array): void => {
  if (allowed.length * 32 < z.length) {
    throw settingOutOfRange('allowed', `a mask of at least ${Math.ceil(z.length / 32)} words`, allowed.length)
  }
  for (let first = 0; first < z.length; first += 32) {
    const word = allowed[first >>> 5]!
    if (word === 0xffffffff) continue
    const end = Math.min(first + 32, z.length)
    if (word === 0) {
      z.fill(Number.NEGATIVE_INFINITY, first, end)
      continue
    }
    for (let id = first; id < end; id++) {
      if (((word >>> (id & 31)) & 1) === 0) z[id] = Number.NEGATIVE_INFINITY
    }
  }
}
