import { type CheckedSettings, settingOutOfRange } from './sampler-settings.js'

/** The logits of a step after penalties and bias: formulas and order are those of `SamplerSettings`. */
export class AdjustedLogits {
  readonly #settings: CheckedSettings
  readonly #penalises: boolean
  /** Whether the settings alone can make another token the highest. */
  readonly changes: boolean
  /** the ids of the sequence, each once, and how often each occurs: by id */
  #seen: number[] = []
  #counts = new Uint32Array(0)
  #values = new Float64Array(0)

  constructor(settings: CheckedSettings) {
    const { repetitionPenalty, presencePenalty, frequencyPenalty } = settings
    this.#settings = settings
    this.#penalises = repetitionPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0
    this.changes = this.#penalises || settings.logitBias.length > 0
  }

  /** Forgets the sequence before. */
  begin(ids: ArrayLike<number>): void {
    for (const id of this.#seen) this.#counts[id] = 0
    this.#seen = []
    for (let i = 0; i < ids.length; i++) this.accept(ids[i]!)
  }

  /** Counts a token of the sequence. */
  accept(id: number): void {
    if (!this.#penalises) return
    if (id >= this.#counts.length) {
      const longer = new Uint32Array(2 * (id + 1))
      longer.set(this.#counts)
      this.#counts = longer
    }
    if (this.#counts[id]!++ === 0) this.#seen.push(id)
  }

  /** logits: f32 [vocab]. Returns f64 [vocab], overwritten by the next call; -Infinity is what a bias forbids. */
  apply(logits: Float32Array): Float64Array {
    if (this.#values.length !== logits.length) this.#values = new Float64Array(logits.length)
    const z = this.#values
    z.set(logits)
    if (this.#penalises) this.#penalise(z)
    for (const [id, bias] of this.#settings.logitBias) {
      if (id >= z.length) throw settingOutOfRange('logitBias', `keyed by ids below ${z.length}`, id)
      z[id]! += bias
    }
    return z
  }

  #penalise(z: Float64Array): void {
    const { repetitionPenalty, presencePenalty, frequencyPenalty } = this.#settings
    for (const id of this.#seen) {
      const count = this.#counts[id]!
      const logit = z[id]!
      const repeated = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty
      z[id] = repeated - presencePenalty - count * frequencyPenalty
    }
  }
}
