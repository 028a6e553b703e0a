import type { KdaInputs, KdaParameters, KdaShape } from './kda.js'
import type { KdaState } from './state.js'

// The layer in double precision, one number at a time, as docs/spec/SPEC.md §6 states it: the oracle of the tests.

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x))
const squares = (x: Float64Array) => x.reduce((sum, v) => sum + v * v, 0)
const l2 = (x: Float64Array) => x.map((v) => v / Math.sqrt(squares(x) + 1e-6))

// S ← diag(α) S, e = β (v − Sᵀk), S ← S + k eᵀ; returns Sᵀq. s: [keys, values], updated
const deltaRule = (s: Float64Array, [q, k, v, alpha]: readonly Float64Array[], beta: number) => {
  const dim = v!.length
  const read = (by: Float64Array) => v!.map((_, j) => by.reduce((sum, x, d) => sum + x * s[d * dim + j]!, 0))
  s.set(s.map((x, i) => alpha![Math.floor(i / dim)]! * x))
  const u = read(k!)
  s.set(s.map((x, i) => x + k![Math.floor(i / dim)]! * beta * (v![i % dim]! - u[i % dim]!)))
  return read(q!)
}

/** Output and recurrence after `tokens` more tokens; the convolutions look back into `state.tails`. */
export const kdaReference = (
  { heads, headDim: dim, convTaps: taps, gateLowerBound, normEps }: KdaShape,
  { qConv, kConv, vConv, aLog, dtBias, oNorm }: KdaParameters,
  inputs: KdaInputs,
  state: KdaState,
  tokens: number
): { out: Float64Array; recurrence: Float64Array } => {
  const width = heads * dim
  const recurrence = Float64Array.from(state.recurrence)
  const out = new Float64Array(tokens * width)
  const convolved = (which: number, x: Float32Array, weight: Float32Array, t: number, h: number) =>
    Float64Array.from({ length: dim }, (_, i) => {
      const c = h * dim + i
      const input = (at: number) =>
        at < 0 ? state.tails[((which + 1) * (taps - 1) + at) * width + c]! : x[at * width + c]!
      let u = 0
      for (let tap = 0; tap < taps; tap++) u += weight[c * taps + tap]! * input(t - taps + 1 + tap)
      return u * sigmoid(u)
    })
  for (let t = 0; t < tokens; t++) {
    for (let h = 0; h < heads; h++) {
      const at = t * width + h * dim
      const q = l2(convolved(0, inputs.q, qConv, t, h)).map((x) => x * dim ** -0.5)
      const k = l2(convolved(1, inputs.k, kConv, t, h))
      const v = convolved(2, inputs.v, vConv, t, h)
      const z = Float64Array.from(v, (_, i) => inputs.decay[at + i]! + dtBias[h * dim + i]!)
      const alpha = z.map((x) => Math.exp(gateLowerBound * sigmoid(Math.exp(aLog[h]!) * x)))
      const s = recurrence.subarray(h * dim * dim, (h + 1) * dim * dim)
      const o = deltaRule(s, [q, k, v, alpha], sigmoid(inputs.beta[t * heads + h]!))
      const rms = Math.sqrt(squares(o) / dim + normEps)
      out.set(
        o.map((x, i) => (x / rms) * oNorm[i]! * sigmoid(inputs.gate[at + i]!)),
        at
      )
    }
  }
  return { out, recurrence }
}
