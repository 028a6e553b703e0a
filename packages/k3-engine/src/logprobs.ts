/** A token and the natural logarithm of its probability. */
export interface TokenLogprob {
  readonly id: number
  readonly logprob: number
}

/** The token that was chosen, and the most probable ones of its step, the best first, lowest id on ties. */
export interface TokenLogprobs extends TokenLogprob {
  readonly best: readonly TokenLogprob[]
}

/**
 * Log-probabilities of one step: log-softmax of the logits as the model gave them, at temperature 1, whatever the
 * sampler or a constraint made of them. logits: f32 [vocab], finite; sums are in double precision.
 */
export const logprobsOf = (logits: Float32Array, id: number, count: number): TokenLogprobs => {
  let highest = Number.NEGATIVE_INFINITY
  for (const logit of logits) if (logit > highest) highest = logit
  let sum = 0
  for (const logit of logits) sum += Math.exp(logit - highest)
  const shift = highest + Math.log(sum)
  const of = (token: number): TokenLogprob => ({ id: token, logprob: logits[token]! - shift })
  return { ...of(id), best: bestIds(logits, count).map(of) }
}

const bestIds = (logits: Float32Array, count: number): number[] => {
  const best: number[] = []
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!
    if (best.length === count && (count === 0 || logit <= logits[best[count - 1]!]!)) continue
    let at = best.length
    while (at > 0 && logits[best[at - 1]!]! < logit) at--
    best.splice(at, 0, id)
    if (best.length > count) best.pop()
  }
  return best
}
