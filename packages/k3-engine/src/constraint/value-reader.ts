import { type Cell, type Frame, State } from './automaton.js'
import type { Vocabulary } from './vocabulary.js'

// 20 kB each for the released vocabulary.
const MOST_MASKS = 256

/** Masks of one grammar, kept for the stacks met lately. */
export class GrammarMasks {
  readonly vocabulary: Vocabulary
  readonly #masks = new Map<Cell, Uint32Array>()

  constructor(vocabulary: Vocabulary) {
    this.vocabulary = vocabulary
  }

  /** Sets the bits of the tokens that may come in this state. words: u32 [vocab / 32, rounded up] */
  allow(state: State, words: Uint32Array): void {
    for (const cell of state.cells) {
      const mask = this.#maskOf(cell)
      for (let i = 0; i < mask.length; i++) words[i]! |= mask[i]!
    }
  }

  #maskOf(cell: Cell): Uint32Array {
    let mask = this.#masks.get(cell)
    if (mask === undefined) mask = this.vocabulary.mask(cell)
    else this.#masks.delete(cell)
    this.#masks.set(cell, mask)
    if (this.#masks.size > MOST_MASKS) this.#masks.delete(this.#masks.keys().next().value!)
    return mask
  }
}

/** Reads a value token by token. */
export class ValueReader {
  readonly #masks: GrammarMasks
  #state: State

  constructor(frame: Frame, masks: GrammarMasks) {
    this.#masks = masks
    this.#state = State.start(frame)
  }

  /** Whether the value may be over. */
  get accepts(): boolean {
    return this.#state.accepts
  }

  /** Sets the bits of the tokens that may come. words: u32 [vocab / 32, rounded up] */
  allow(words: Uint32Array): void {
    this.#masks.allow(this.#state, words)
  }

  /** Whether the token may come, read byte by byte and not from the mask. */
  canAccept(id: number): boolean {
    return this.#after(id) !== null
  }

  /** Goes on with a token; false, and nothing changes, when it may not come. */
  accept(id: number): boolean {
    const state = this.#after(id)
    if (state !== null) this.#state = state
    return state !== null
  }

  #after(id: number): State | null {
    const bytes = this.#masks.vocabulary.bytesOf(id)
    if (bytes === undefined) return null
    let state: State | null = this.#state
    for (let i = 0; i < bytes.length && state !== null; i++) state = state.step(bytes[i]!)
    return state
  }
}
