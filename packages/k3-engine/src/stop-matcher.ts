/**
 * Finds stop strings in text that arrives in pieces, across their borders. What could still become a stop string is
 * held back; nothing of a matched one is ever given out.
 */
export class StopMatcher {
  readonly #stops: readonly string[]
  #held = ''
  matched = false

  constructor(stops: readonly string[]) {
    this.#stops = stops
  }

  /** The text that is certain to precede any stop string. */
  push(piece: string): string {
    if (this.#stops.length === 0) return piece
    const text = this.#held + piece
    const ends = this.#stops.map((stop) => text.indexOf(stop)).filter((at) => at !== -1)
    if (ends.length > 0) {
      this.matched = true
      this.#held = ''
      return text.slice(0, Math.min(...ends))
    }
    const keep = this.#longestPrefixAtEnd(text)
    this.#held = text.slice(text.length - keep)
    return text.slice(0, text.length - keep)
  }

  /** What was held back, when nothing more comes. */
  flush(): string {
    const text = this.#held
    this.#held = ''
    return text
  }

  #longestPrefixAtEnd(text: string): number {
    let longest = 0
    for (const stop of this.#stops) {
      for (let n = Math.min(stop.length - 1, text.length); n > longest; n--) {
        if (text.endsWith(stop.slice(0, n))) longest = n
      }
    }
    return longest
  }
}
