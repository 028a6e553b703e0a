import type { MlaInputs, MlaShape } from './mla.js'

// The layer in double precision, one number at a time, with expanded keys and values as docs/spec/SPEC.md §7 states it
// first: the oracle of the tests, and a check that the absorbed form is the same.

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x))
const dot = (a: Float64Array, b: ArrayLike<number>) => a.reduce((sum, x, i) => sum + x * b[i]!, 0)

/** Rows of the cache: the latent normed, the shared key part as it is. kv: [tokens, latent + shared] */
export const latentRowsReference = (
  shape: MlaShape,
  kvNorm: Float32Array,
  kv: Float32Array
): Float64Array => {
  const row = shape.latentDim + shape.sharedKeyDim
  return Float64Array.from(kv, (x, i) => {
    if (i % row >= shape.latentDim) return x
    const latent = Float64Array.from(kv.subarray(i - (i % row), i - (i % row) + shape.latentDim))
    return (x / Math.sqrt(dot(latent, latent) / shape.latentDim + shape.normEps)) * kvNorm[i % row]!
  })
}

/**
 * Output of the last `tokens` positions of `rows` [positions, latent + shared].
 * kvUp: [heads * (nope + value), latent] as numbers
 */
export const mlaReference = (
  { heads, nopeDim: nope, sharedKeyDim: shared, valueDim, latentDim: latent }: MlaShape,
  kvUp: Float32Array,
  rows: Float64Array,
  { queries, gate }: MlaInputs,
  tokens: number
): Float64Array => {
  const row = latent + shared
  const positions = Array.from({ length: rows.length / row }, (_, s) => rows.subarray(s * row, (s + 1) * row))
  const expand = (line: number, c: Float64Array) => dot(c.subarray(0, latent), kvUp.subarray(line * latent))
  const numbers = (length: number, of: (i: number) => number) =>
    Float64Array.from({ length }, (_, i) => of(i))
  const out = new Float64Array(tokens * heads * valueDim)
  for (let h = 0; h < heads; h++) {
    const first = h * (nope + valueDim)
    const keys = positions.map((c) =>
      numbers(nope + shared, (d) => (d < nope ? expand(first + d, c) : c[latent + d - nope]!))
    )
    const values = positions.map((c) => numbers(valueDim, (j) => expand(first + nope + j, c)))
    for (let t = 0; t < tokens; t++) {
      const query = queries.subarray((t * heads + h) * (nope + shared))
      const seen = keys.slice(0, positions.length - tokens + t + 1)
      const scores = seen.map((key) => dot(key, query) * (nope + shared) ** -0.5)
      const p = scores.map((score) => Math.exp(score - Math.max(...scores)))
      const total = p.reduce((a, b) => a + b, 0)
      for (let j = 0; j < valueDim; j++) {
        const at = (t * heads + h) * valueDim + j
        const sum = p.reduce((o, weight, s) => o + weight * values[s]![j]!, 0)
        out[at] = (sum / total) * sigmoid(gate[at]!)
      }
    }
  }
  return out
}
