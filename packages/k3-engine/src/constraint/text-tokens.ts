import { type Cell, type Frame, State, type TextRun } from './automaton.js'
import { OtherKeyFrames, TextFrames } from './text-frames.js'
import { byBytes, type Token, TokenTrie } from './token-trie.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Tokens that hold the end of a text: so many characters, a quote, and a rest. */
interface Leaving {
  readonly ids: Int32Array
  readonly characters: Uint16Array
  /** Which of the distinct rests each has; rest 0 is the empty one. */
  readonly rests: Int32Array
  readonly restTrie: TokenTrie
  readonly restWords: number
  /** The same tokens whole, for places where their text decides. */
  readonly whole: TokenTrie
}

/** The tokens of a vocabulary that may come between two characters of a text of one kind. */
export class TextTokens {
  readonly #kind: TextRun['kind']
  readonly #words: number
  readonly #ids: Int32Array
  readonly #characters: Uint16Array
  readonly #longest: number
  readonly #masks = new Map<number, Uint32Array>()
  readonly #leaving: Leaving
  readonly #restsAfter = new WeakMap<Cell, Uint32Array>()

  /** tokens: sorted by bytes; words: the length of a mask */
  constructor(kind: TextRun['kind'], tokens: readonly Token[], words: number) {
    this.#kind = kind
    this.#words = words
    const start = State.start(startOf(kind))
    const within: Token[] = []
    const leaving: { readonly token: Token; readonly quote: number }[] = []
    for (const token of tokens) {
      const length = textBytes(start, token.bytes, kind)
      if (length === token.bytes.length) within.push(token)
      else if (kind !== 'raw' && token.bytes[length] === QUOTE) leaving.push({ token, quote: length })
    }
    this.#ids = Int32Array.from(within, ({ id }) => id)
    this.#characters = Uint16Array.from(within, ({ bytes }) => countCharacters(bytes, kind))
    this.#longest = this.#characters.reduce((most, count) => Math.max(most, count), 0)
    this.#leaving = leavingOf(leaving, kind)
  }

  /** The tokens that may come at this place of a text, as a new mask. */
  mask(cell: Cell, { most, least }: TextRun): Uint32Array {
    const words = new Uint32Array(this.#words)
    words.set(this.#within(most))
    if (least === null) this.#leaving.whole.allow(cell.alone, words)
    else if (this.#kind !== 'raw') this.#leave(cell.next!, { most, least }, words)
    return words
  }

  #within(most: number): Uint32Array {
    const limit = Math.min(most, this.#longest)
    let words = this.#masks.get(limit)
    if (words === undefined) {
      words = new Uint32Array(this.#words)
      for (let i = 0; i < this.#ids.length; i++) {
        const id = this.#ids[i]!
        if (this.#characters[i]! <= limit) words[id >>> 5]! |= 1 << (id & 31)
      }
      this.#masks.set(limit, words)
    }
    return words
  }

  #leave(next: Cell, { most, least }: { most: number; least: number }, words: Uint32Array): void {
    const { ids, characters, rests } = this.#leaving
    const allowed = this.#restsOf(next)
    for (let i = 0; i < ids.length; i++) {
      const count = characters[i]!
      const rest = rests[i]!
      if (count < least || count > most || ((allowed[rest >>> 5]! >>> (rest & 31)) & 1) === 0) continue
      const id = ids[i]!
      words[id >>> 5]! |= 1 << (id & 31)
    }
  }

  /** Which rests may come after the quote. */
  #restsOf(next: Cell): Uint32Array {
    let allowed = this.#restsAfter.get(next)
    if (allowed === undefined) {
      allowed = new Uint32Array(this.#leaving.restWords)
      allowed[0] = 1
      this.#leaving.restTrie.allow(next.alone, allowed)
      this.#restsAfter.set(next, allowed)
    }
    return allowed
  }
}

const startOf = (kind: TextRun['kind']): Frame => {
  if (kind === 'key') return new OtherKeyFrames([]).start
  return new TextFrames(kind, { min: 0, max: Number.POSITIVE_INFINITY }).at(0)
}

/** How many bytes are text: all of them, or those before the quote or whatever else is none. */
const textBytes = (start: State, bytes: Uint8Array, kind: TextRun['kind']): number => {
  let state = start
  for (let i = 0; i < bytes.length; i++) {
    const after = state.step(bytes[i]!)
    const ended = after === null || (kind !== 'raw' && after.accepts)
    if (ended) return i
    state = after
  }
  return bytes.length
}

/** Characters that begin in these bytes; an escape is one. */
const countCharacters = (bytes: Uint8Array, kind: TextRun['kind']): number => {
  let count = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!
    if (byte >= 0x80 && byte < 0xc0) continue
    count++
    if (kind !== 'raw' && byte === BACKSLASH) i += bytes[i + 1] === 0x75 ? 5 : 1
  }
  return count
}

const leavingOf = (
  leaving: readonly { readonly token: Token; readonly quote: number }[],
  kind: TextRun['kind']
): Leaving => {
  const numbers = new Map<string, Token>()
  const rests = leaving.map(({ token: { bytes }, quote }) => {
    const rest = bytes.subarray(quote + 1)
    if (rest.length === 0) return 0
    const name = String.fromCharCode(...rest)
    const known = numbers.get(name)
    if (known !== undefined) return known.id
    const id = numbers.size + 1
    numbers.set(name, { id, bytes: rest })
    return id
  })
  return {
    ids: Int32Array.from(leaving, ({ token }) => token.id),
    characters: Uint16Array.from(leaving, ({ token, quote }) =>
      countCharacters(token.bytes.subarray(0, quote), kind)
    ),
    rests: Int32Array.from(rests),
    restTrie: new TokenTrie([...numbers.values()].sort(byBytes)),
    restWords: Math.ceil((numbers.size + 1) / 32),
    whole: new TokenTrie(leaving.map(({ token }) => token))
  }
}
