// The equations in double precision, one token or element at a time: the oracle of the tests, and their documentation.

const sum = (x: readonly number[]) => x.reduce((total, v) => total + v, 0)
const inverseRms = (x: readonly number[], eps: number) =>
  1 / Math.sqrt(sum(x.map((v) => v * v)) / x.length + eps)

/** x / sqrt(mean(x²) + eps) · weight. x, weight: [dim] */
export const rmsNorm = (x: readonly number[], weight: readonly number[], eps: number): number[] => {
  const r = inverseRms(x, eps)
  return x.map((v, i) => v * r * weight[i]!)
}

/** softmax over the sources of keyWeight · v_s / rms(v_s). sources: [count][dim] */
export const mixWeights = (
  sources: readonly (readonly number[])[],
  key: readonly number[],
  eps: number
): number[] => {
  const logits = sources.map((v) => sum(v.map((x, i) => x * key[i]!)) * inverseRms(v, eps))
  const e = logits.map((a) => Math.exp(a - Math.max(...logits)))
  return e.map((v) => v / sum(e))
}

/** Σ softmax_s v_s; the values are not normalised. */
export const residualMix = (
  sources: readonly (readonly number[])[],
  key: readonly number[],
  eps: number
): number[] => {
  const a = mixWeights(sources, key, eps)
  return key.map((_, i) => sum(sources.map((v, s) => a[s]! * v[i]!)))
}

/** 1 / (1 + e^-x) */
export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))

/** beta tanh(g / beta) σ(g) · linearBeta tanh(u / linearBeta) */
export const situ = (g: number, u: number, beta: number, linearBeta: number): number =>
  beta * Math.tanh(g / beta) * sigmoid(g) * linearBeta * Math.tanh(u / linearBeta)

/** The k largest of σ(logit) + bias, ties to the lowest index, and their unbiased weights. logits, bias: [experts] */
export const route = (
  logits: readonly number[],
  bias: readonly number[],
  { k, renormalize, scalingFactor }: { k: number; renormalize: boolean; scalingFactor: number }
): { indices: number[]; weights: number[] } => {
  const scores = logits.map(sigmoid)
  const key = (e: number) => scores[e]! + bias[e]!
  const order = scores.map((_, e) => e).sort((a, b) => key(b) - key(a) || a - b)
  const indices = order.slice(0, k)
  const chosen = indices.map((e) => scores[e]!)
  const divisor = renormalize ? sum(chosen) + 1e-20 : 1
  return { indices, weights: chosen.map((s) => (s / divisor) * scalingFactor) }
}
