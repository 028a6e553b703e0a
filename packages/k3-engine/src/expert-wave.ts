import type { ExpertGroups } from './expert-groups.js'

/**
 * Experts in the order in which they arrive, as the expert MLP takes them. One pair is one (token, expert) product; pairs
 * are numbered as they come, and `pairOf` finds them again in the router's order, so that no order of arrival can be told
 * from the sum.
 */
export class ExpertWave {
  /** Experts that arrived last. */
  count = 0
  readonly bases: Float64Array
  /** [count + 1] first pair of each */
  readonly starts: Int32Array
  /** token of each pair */
  readonly tokens: Int32Array
  /** pair of each choice */
  readonly pairOf: Int32Array
  /** [count] which of the groups they are */
  readonly positions: Int32Array
  readonly #groups: ExpertGroups
  readonly #topK: number
  #pairs = 0

  constructor(groups: ExpertGroups, topK: number) {
    const experts = groups.experts.length
    const choices = groups.choices.length
    this.bases = new Float64Array(experts)
    this.starts = new Int32Array(experts + 1)
    this.tokens = new Int32Array(choices)
    this.pairOf = new Int32Array(choices)
    this.positions = new Int32Array(experts)
    this.#groups = groups
    this.#topK = topK
  }

  /** The groups are others now. */
  restart(): void {
    this.#pairs = 0
  }

  /** `count` more have arrived; `positions` and `bases` say which and where. */
  accept(count: number): void {
    const { starts, choices } = this.#groups
    this.count = count
    for (let i = 0; i < count; i++) {
      const position = this.positions[i]!
      this.starts[i] = this.#pairs
      for (let at = starts[position]!; at < starts[position + 1]!; at++) {
        const choice = choices[at]!
        this.tokens[this.#pairs] = Math.floor(choice / this.#topK)
        this.pairOf[choice] = this.#pairs++
      }
    }
    this.starts[count] = this.#pairs
  }
}
