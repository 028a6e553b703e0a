import { shown } from './check.js'

/**
 * How near an output has to be to its float64 reference: the relative L2 error of the whole tensor, and the largest error
 * in units of the float32 ulp at max(|reference|, rms(reference)); or equal after rounding the reference to float32.
 */
export type Tolerance = { readonly exact: true } | { readonly rel_l2: number; readonly max_ulp: number }

/** The outcome of one comparison. */
export interface Comparison {
  readonly ok: boolean
  readonly detail: string
}

type Numbers = Float32Array | Int32Array

/** Holds an output against its reference. */
export const compare = (output: Numbers, reference: Float64Array, tolerance: Tolerance): Comparison => {
  if (output.length !== reference.length) {
    return { ok: false, detail: `${output.length} numbers, expected ${reference.length}` }
  }
  if ('exact' in tolerance) return compareExact(output, reference)
  const { relL2, maxUlp } = deviation(output, reference)
  const ok = relL2 <= tolerance.rel_l2 && maxUlp <= tolerance.max_ulp
  return {
    ok,
    detail: `rel ${shown(relL2)} (${tolerance.rel_l2}), ulp ${shown(maxUlp)} (${tolerance.max_ulp})`
  }
}

const compareExact = (output: Numbers, reference: Float64Array): Comparison => {
  const wrong = reference.findIndex((value, i) => !Object.is(Math.fround(value), output[i]))
  if (wrong < 0) return { ok: true, detail: 'exact' }
  const detail = `number ${wrong} is ${output[wrong]}, expected ${Math.fround(reference[wrong]!)}`
  return { ok: false, detail }
}

/** |y - reference| / |reference|; both infinite when an output is not finite or differs from a reference of zeros. */
export const deviation = (
  output: ArrayLike<number>,
  reference: Float64Array
): { relL2: number; maxUlp: number } => {
  const norm = Math.sqrt(reference.reduce((sum, value) => sum + value * value, 0))
  const rms = norm / Math.sqrt(reference.length)
  let squares = 0
  let maxUlp = 0
  for (let i = 0; i < reference.length; i++) {
    const error = Math.abs(output[i]! - reference[i]!)
    if (error === 0) continue
    const scale = Math.max(Math.abs(reference[i]!), rms)
    if (!Number.isFinite(error) || scale === 0)
      return { relL2: Number.POSITIVE_INFINITY, maxUlp: Number.POSITIVE_INFINITY }
    squares += error * error
    maxUlp = Math.max(maxUlp, error / 2 ** (Math.floor(Math.log2(scale)) - 23))
  }
  return { relL2: squares === 0 ? 0 : Math.sqrt(squares) / norm, maxUlp }
}

/** Whether two outputs have the same bits. */
export const sameBits = (a: Numbers, b: Numbers): boolean =>
  Buffer.from(a.buffer, a.byteOffset, a.byteLength).equals(Buffer.from(b.buffer, b.byteOffset, b.byteLength))
