import { words } from './arrays.js'

/** The same numbers, or their neighbours in binary32. */
export type Nudge = (x: Float32Array) => Float32Array

const SAMPLES = 16
const AS_IT_IS: Nudge = (x) => x

/**
 * What `excess` of a correct kernel stays below when a number depends on so many transcendentals, whose errors
 * docs/NUMERICS.md gives in steps. The other roundings are 0.29 of a step each in the mean, four where 200 of them add up.
 */
export const limitOf = ({ sigmoids, exps }: { readonly sigmoids: number; readonly exps: number }): number =>
  4 + 2.4019 * sigmoids + 1.0593 * exps

const neighbours = (seed: number): Nudge => {
  const next = words(seed)
  return (x) => {
    const bits = Uint32Array.from(new Uint32Array(x.buffer, x.byteOffset, x.length), (word) =>
      next() & 1 || (word & 0x7fffffff) === 0 ? word + 1 : word - 1
    )
    return new Float32Array(bits.buffer)
  }
}

/**
 * How far `got` is from the oracle, at its worst number, in units of how far that number moves when every number the
 * oracle reads moves by one step of binary32: the root mean square over seeded nudges, and never below half a step of the
 * number itself. So a sum that cancels is held to its terms and any other to its value: a limit relative to the result
 * refuses correct roundings of the one, and the worst case of all roundings together, some 100 times this, lets faults of
 * the other pass.
 * oracle: hands all it reads through its argument, and leaves it as it was
 */
export const excess = (got: ArrayLike<number>, oracle: (nudge: Nudge) => Float64Array): number => {
  const want = oracle(AS_IT_IS)
  if (got.length !== want.length) throw new Error(`${want.length} numbers expected, ${got.length} found`)
  const squares = want.map((w) => (w * 2 ** -24) ** 2)
  for (let sample = 1; sample <= SAMPLES; sample++) {
    for (const [i, moved] of oracle(neighbours(sample)).entries())
      squares[i]! += (moved - want[i]!) ** 2 / SAMPLES
  }
  const steps = want.map((w, i) => (got[i] === w ? 0 : Math.abs(got[i]! - w) / Math.sqrt(squares[i]!)))
  return steps.reduce((worst, x) => Math.max(worst, x), 0)
}
