// 2048 steps an octave: the rest of the exponent is below 1.7e-4, where a cubic is exact to double precision.
const STEPS = 2048
const STEPS_PER_UNIT = STEPS / Math.LN2
const UNIT_PER_STEP = Math.LN2 / STEPS
const SMALLEST_EXPONENT = -700
// below it nothing but ties of the highest logit has a weight, and 1 / temperature has to stay finite
const LEAST_TEMPERATURE = 1e-300

/** The logits of a step as they are to be drawn from. */
export interface AdjustedStep {
  /** f64 [vocab]; -Infinity for a weight of 0 */
  readonly z: Float64Array
  /** the highest of them, of those that are allowed */
  readonly highest: number
  /** those that are allowed, ascending; null for all */
  readonly ids: Uint32Array | null
}

/**
 * The numerators of a softmax, exp((z - highest z) / temperature), to 1e-14 of each. By table, because 163,840 calls of
 * Math.exp are most of what a token's choice would cost; below e^-700 they are 0.
 */
export class SoftmaxWeights {
  /** u32 [vocab]: in the first `count` places the ids that were taken */
  readonly order: Uint32Array
  count = 0
  /** f64 [vocab], by id, each in (0, 1]; of ids that were taken, the others are out of date */
  readonly values: Float64Array
  readonly #fractions = Float64Array.from({ length: STEPS }, (_, i) => 2 ** (i / STEPS))
  readonly #halvings = Float64Array.from({ length: 1024 }, (_, i) => 2 ** -i)

  constructor(vocab: number) {
    this.order = new Uint32Array(vocab)
    this.values = new Float64Array(vocab)
  }

  /**
   * Takes the allowed ids of at least this weight, ascending; one whose weight is 0 never. Only their weights are kept,
   * because few of a vocabulary matter and all of them do not fit into a cache.
   * @returns the sum over all that are allowed
   */
  take({ z, highest, ids }: AdjustedStep, temperature: number, least: number): number {
    const { order, values } = this
    const inverse = 1 / Math.max(temperature, LEAST_TEMPERATURE)
    const positive = Math.max(least, Number.MIN_VALUE)
    let total = 0
    let count = 0
    if (ids === null) {
      for (let id = 0; id < z.length; id++) {
        const weight = this.#weight((z[id]! - highest) * inverse)
        total += weight
        if (weight < positive) continue
        values[id] = weight
        order[count++] = id
      }
    } else {
      for (let i = 0; i < ids.length; i++) {
        const id = ids[i]!
        const weight = this.#weight((z[id]! - highest) * inverse)
        total += weight
        if (weight < positive) continue
        values[id] = weight
        order[count++] = id
      }
    }
    this.count = count
    return total
  }

  /** exp(x) for x of at most 0 */
  #weight(x: number): number {
    if (!(x > SMALLEST_EXPONENT)) return 0
    const steps = Math.floor(x * STEPS_PER_UNIT)
    const r = x - steps * UNIT_PER_STEP
    const power = this.#halvings[-(steps >> 11)]! * this.#fractions[steps & 2047]!
    return power * (1 + r * (1 + r * (0.5 + r * (1 / 6))))
  }
}
