/**
 * The router's choices turned around: which tokens each chosen expert works on. A choice is `token * k + rank`; the
 * choices of an expert are contiguous, so that its weights are read once for all of them.
 */
export class ExpertGroups {
  /** Distinct experts chosen, in the router's order for one token, ascending otherwise. */
  count = 0
  readonly experts: Int32Array
  /** [count + 1] first entry of `choices` of each expert */
  readonly starts: Int32Array
  /** [tokens * k] */
  readonly choices: Int32Array
  readonly #choicesOf: Int32Array
  readonly #positionOf: Int32Array

  constructor(maxTokens: number, topK: number, expertCount: number) {
    const maxChoices = maxTokens * topK
    const maxExperts = Math.min(maxChoices, expertCount)
    this.experts = new Int32Array(maxExperts)
    this.starts = new Int32Array(maxExperts + 1)
    this.choices = new Int32Array(maxChoices)
    this.#choicesOf = new Int32Array(expertCount)
    this.#positionOf = new Int32Array(expertCount)
  }

  /** chosen: [tokens, k] expert ids, distinct within a token. */
  group(chosen: Int32Array, tokens: number, topK: number): void {
    if (tokens === 1) this.#groupOne(chosen, topK)
    else this.#groupMany(chosen, tokens * topK)
  }

  #groupMany(chosen: Int32Array, choices: number): void {
    this.#choicesOf.fill(0)
    for (let i = 0; i < choices; i++) this.#choicesOf[chosen[i]!]!++
    this.count = 0
    this.starts[0] = 0
    for (let expert = 0; expert < this.#choicesOf.length; expert++) {
      const own = this.#choicesOf[expert]!
      if (own === 0) continue
      this.#positionOf[expert] = this.starts[this.count]!
      this.experts[this.count++] = expert
      this.starts[this.count] = this.starts[this.count - 1]! + own
    }
    for (let i = 0; i < choices; i++) this.choices[this.#positionOf[chosen[i]!]!++] = i
  }

  #groupOne(chosen: Int32Array, topK: number): void {
    this.count = topK
    this.starts[0] = 0
    for (let i = 0; i < topK; i++) {
      this.experts[i] = chosen[i]!
      this.starts[i + 1] = i + 1
      this.choices[i] = i
    }
  }
}
