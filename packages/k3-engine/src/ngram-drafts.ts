// A pair of tokens is the shortest context that says anything; ids stay below 2^24, so a pair is an exact number.
const PAIR = 2 ** 24
const MOST_PLACES = 64
const LONGEST_MATCH = 32

/**
 * Guesses what comes next from what was there already: the longest earlier occurrence of the sequence's end, at least two
 * tokens of it, the latest one on ties, and what followed there. A guess that reaches the end of the sequence goes on
 * with itself, as a repetition does.
 */
export class NgramDrafts {
  readonly #ids: number[] = []
  /** for each pair of tokens, the positions behind its occurrences, ascending */
  readonly #places = new Map<number, number[]>()

  constructor(ids: readonly number[]) {
    for (const id of ids) this.push(id)
  }

  /** The sequence goes on with this token. */
  push(id: number): void {
    this.#ids.push(id)
    const { length } = this.#ids
    if (length < 2) return
    const places = this.#places.get(this.#lastPair())
    if (places === undefined) this.#places.set(this.#lastPair(), [length])
    else places.push(length)
  }

  /** At most `most` tokens; none when the end of the sequence is new. */
  propose(most: number): number[] {
    const place = this.#ids.length < 2 || most < 1 ? null : this.#longestMatch()
    if (place === null) return []
    const drafts: number[] = []
    for (let i = place; drafts.length < most; i++) {
      drafts.push(i < this.#ids.length ? this.#ids[i]! : drafts[i - this.#ids.length]!)
    }
    return drafts
  }

  #lastPair(): number {
    return this.#ids.at(-2)! * PAIR + this.#ids.at(-1)!
  }

  #longestMatch(): number | null {
    const places = this.#places.get(this.#lastPair())!
    let best: number | null = null
    let longest = 0
    // the last place is the end itself
    for (let i = places.length - 2; i >= Math.max(0, places.length - 1 - MOST_PLACES); i--) {
      const length = this.#matchLength(places[i]!)
      if (length <= longest) continue
      longest = length
      best = places[i]!
    }
    return best
  }

  #matchLength(place: number): number {
    const end = this.#ids.length
    let length = 2
    while (
      length < LONGEST_MATCH &&
      length < place &&
      this.#ids[place - 1 - length] === this.#ids[end - 1 - length]
    ) {
      length++
    }
    return length
  }
}
