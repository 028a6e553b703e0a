import type { Frame } from './automaton.js'
import { type GrammarMasks, ValueReader } from './value-reader.js'

/** Where an answer is. The next phase is what a token leads to. */
export interface Phase {
  /** Sets the bits of the tokens that may come. words: u32 [vocab / 32, rounded up] */
  allow(words: Uint32Array): void
  /** null when the token may not come. */
  accept(id: number): Phase | null
}

const setBit = (words: Uint32Array, id: number): void => {
  words[id >>> 5]! |= 1 << (id & 31)
}

/** Ids that come as they are, and what follows them. */
export interface Sequence {
  readonly ids: readonly number[]
  readonly next: () => Phase
}

/** One of several sequences of ids, none of which begins another one. */
export class ChoicePhase implements Phase {
  readonly #sequences: readonly Sequence[]
  readonly #done: number

  constructor(sequences: readonly Sequence[], done = 0) {
    this.#sequences = sequences
    this.#done = done
  }

  allow(words: Uint32Array): void {
    for (const { ids } of this.#sequences) setBit(words, ids[this.#done]!)
  }

  accept(id: number): Phase | null {
    const left = this.#sequences.filter(({ ids }) => ids[this.#done] === id)
    const [first] = left
    if (first === undefined) return null
    return first.ids.length === this.#done + 1 ? first.next() : new ChoicePhase(left, this.#done + 1)
  }
}

/** A value of a grammar, and what follows it; that begins with a marker, which is no part of a value. */
export class ValuePhase implements Phase {
  readonly #reader: ValueReader
  readonly #then: Phase

  constructor(frame: Frame, masks: GrammarMasks, then: Phase) {
    this.#reader = new ValueReader(frame, masks)
    this.#then = then
  }

  allow(words: Uint32Array): void {
    this.#reader.allow(words)
    if (this.#reader.accepts) this.#then.allow(words)
  }

  accept(id: number): Phase | null {
    if (this.#reader.accept(id)) return this
    return this.#reader.accepts ? this.#then.accept(id) : null
  }
}

/** Anything but the ids that structure needs, and what follows it; that begins with one of those. */
export class ProsePhase implements Phase {
  readonly #allowed: Uint32Array
  readonly #then: Phase

  /** allowed: u32 [vocab / 32, rounded up] */
  constructor(allowed: Uint32Array, then: Phase) {
    this.#allowed = allowed
    this.#then = then
  }

  allow(words: Uint32Array): void {
    for (let i = 0; i < words.length; i++) words[i]! |= this.#allowed[i]!
    this.#then.allow(words)
  }

  accept(id: number): Phase | null {
    if (((this.#allowed[id >>> 5]! >>> (id & 31)) & 1) === 1) return this
    return this.#then.accept(id)
  }
}

/** One way or the other; they begin with different ids. */
export class EitherPhase implements Phase {
  readonly #one: Phase
  readonly #other: Phase

  constructor(one: Phase, other: Phase) {
    this.#one = one
    this.#other = other
  }

  allow(words: Uint32Array): void {
    this.#one.allow(words)
    this.#other.allow(words)
  }

  accept(id: number): Phase | null {
    const phase = this.#one.accept(id)
    return phase === null ? this.#other.accept(id) : phase
  }
}
