/**
 * The router's choices turned around: which tokens each chosen expert works on. One pair is one (token, expert) choice;
 * the pairs of an expert are contiguous, so that its weights are read once for all of them.
 */
export class ExpertGroups {
  /** Distinct experts chosen, in the router's order for one token, ascending otherwise. */
  count = 0
  readonly experts: Int32Array
  /** [count + 1] first pair of each expert */
  readonly starts: Int32Array
  /** [tokens * k] token of each pair */
  readonly tokens: Int32Array
  /** [tokens, k] pair of each choice, in router order */
  readonly pairOf: Int32Array
  readonly #pairsOf: Int32Array
  readonly #positionOf: Int32Array

  constructor(maxTokens: number, topK: number, expertCount: number) {
    const maxPairs = maxTokens * topK
    const maxExperts = Math.min(maxPairs, expertCount)
    this.experts = new Int32Array(maxExperts)
    this.starts = new Int32Array(maxExperts + 1)
    this.tokens = new Int32Array(maxPairs)
    this.pairOf = new Int32Array(maxPairs)
    this.#pairsOf = new Int32Array(expertCount)
    this.#positionOf = new Int32Array(expertCount)
  }

  /** chosen: [tokens, k] expert ids, distinct within a token. */
  group(chosen: Int32Array, tokens: number, topK: number): void {
    if (tokens === 1) this.#groupOne(chosen, topK)
    else this.#groupMany(chosen, tokens, topK)
  }

  #groupMany(chosen: Int32Array, tokens: number, topK: number): void {
    const pairs = tokens * topK
    this.#pairsOf.fill(0)
    for (let i = 0; i < pairs; i++) this.#pairsOf[chosen[i]!]!++
    this.count = 0
    this.starts[0] = 0
    for (let expert = 0; expert < this.#pairsOf.length; expert++) {
      const own = this.#pairsOf[expert]!
      if (own === 0) continue
      this.#positionOf[expert] = this.starts[this.count]!
      this.experts[this.count++] = expert
      this.starts[this.count] = this.starts[this.count - 1]! + own
    }
    for (let i = 0; i < pairs; i++) {
      const pair = this.#positionOf[chosen[i]!]!++
      this.pairOf[i] = pair
      this.tokens[pair] = Math.floor(i / topK)
    }
  }

  #groupOne(chosen: Int32Array, topK: number): void {
    this.count = topK
    this.starts[0] = 0
    for (let i = 0; i < topK; i++) {
      this.experts[i] = chosen[i]!
      this.starts[i + 1] = i + 1
      this.tokens[i] = 0
      this.pairOf[i] = i
    }
  }
}
