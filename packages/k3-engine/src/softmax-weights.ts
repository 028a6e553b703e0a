// 2048 steps an octave: the rest of the exponent is below 1.7e-4, where a cubic is exact to double precision.
const STEPS = 2048
const STEPS_PER_UNIT = STEPS / Math.LN2
const UNIT_PER_STEP = Math.LN2 / STEPS
const SMALLEST_EXPONENT = -700

/**
 * The numerators of a softmax, exp((z - highest z) / temperature), to 1e-14 of each. By table, because 163,840 calls of
 * Math.exp are most of what a token's choice would cost; below e^-700 they are 0.
 */
export class SoftmaxWeights {
  /** f64 [vocab], each in [0, 1] */
  readonly values: Float64Array
  readonly #fractions = Float64Array.from({ length: STEPS }, (_, i) => 2 ** (i / STEPS))
  readonly #halvings = Float64Array.from({ length: 1024 }, (_, i) => 2 ** -i)

  constructor(vocab: number) {
    this.values = new Float64Array(vocab)
  }

  /** Overwrites `values`; returns their sum. z: f64 [vocab], -Infinity for a weight of 0 */
  assign(z: Float64Array, highest: number, temperature: number): number {
    const values = this.values
    const fractions = this.#fractions
    const halvings = this.#halvings
    let total = 0
    for (let id = 0; id < values.length; id++) {
      const x = (z[id]! - highest) / temperature
      let weight = 0
      if (x > SMALLEST_EXPONENT) {
        const steps = Math.floor(x * STEPS_PER_UNIT)
        const r = x - steps * UNIT_PER_STEP
        const power = halvings[-(steps >> 11)]! * fractions[steps & 2047]!
        weight = power * (1 + r * (1 + r * (0.5 + r * (1 / 6))))
      }
      values[id] = weight
      total += weight
    }
    return total
  }
}
