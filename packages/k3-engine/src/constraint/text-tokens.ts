import type { Cell, TextRun } from './automaton.js'
import { BETWEEN, NO_PLACE, placeTable } from './text-frames.js'
import { TokenTable } from './token-table.js'
import { NO_TOKEN, TokenTrie } from './token-trie.js'

const QUOTE = 0x22

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

/** What a walk over the vocabulary finds, in the order of the bytes. */
class Found {
  /** Tokens that are text as a whole, and how many characters begin in each. */
  readonly within: number[] = []
  readonly withinCharacters: number[] = []
  /** Tokens with the quote that ends a text: how many characters come before it, and how many bytes. */
  readonly leaving: number[] = []
  readonly leavingCharacters: number[] = []
  readonly quotes: number[] = []

  constructor(kind: TextRun['kind'], { nodes, byte, depth, end, id }: TokenTrie) {
    const table = placeTable(kind)
    const places = [BETWEEN]
    const characters = [0]
    for (let node = 0; node < nodes; ) {
      const at = depth[node]!
      const place = places[at]!
      const then = table[(place << 8) | byte[node]!]!
      if (then === NO_PLACE) {
        const isQuote = place === BETWEEN && byte[node] === QUOTE && kind !== 'raw'
        for (const past = end[node]!; node < past; node++) {
          if (isQuote && id[node] !== NO_TOKEN) this.#leave(id[node]!, at, characters[at]!)
        }
        continue
      }
      places[at + 1] = then
      characters[at + 1] = characters[at]! + (place === BETWEEN ? 1 : 0)
      if (id[node] !== NO_TOKEN) {
        this.within.push(id[node]!)
        this.withinCharacters.push(characters[at + 1]!)
      }
      node++
    }
  }

  #leave(id: number, quote: number, characters: number): void {
    this.leaving.push(id)
    this.leavingCharacters.push(characters)
    this.quotes.push(quote)
  }
}

/** The tokens of a vocabulary that may come between two characters of a text of one kind. */
export class TextTokens {
  readonly #kind: TextRun['kind']
  /** by how many characters a token may have at most */
  readonly #within: readonly Uint32Array[]
  readonly #leaving: Leaving
  readonly #restsAfter = new WeakMap<Cell, Uint32Array>()

  /** trie: all tokens of the table; words: the length of a mask */
  constructor(kind: TextRun['kind'], table: TokenTable, trie: TokenTrie, words: number) {
    const found = new Found(kind, trie)
    this.#kind = kind
    this.#within = cumulativeMasks(found, words)
    this.#leaving = leavingOf(found, table)
  }

  /** The tokens that may come at this place of a text, as a new mask. */
  mask(cell: Cell, { most, least }: TextRun): Uint32Array {
    const words = this.#within[Math.min(most, this.#within.length - 1)]!.slice()
    if (least === null) this.#leaving.whole.allow(cell.alone, words)
    else if (this.#kind !== 'raw') this.#leave(cell.next!, { most, least }, words)
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

/** Masks of the tokens that are text and have at most 0, 1, 2 … characters. */
const cumulativeMasks = ({ within, withinCharacters }: Found, words: number): readonly Uint32Array[] => {
  const byCharacters: number[][] = [[]]
  within.forEach((id, i) => {
    const characters = withinCharacters[i]!
    while (byCharacters.length <= characters) byCharacters.push([])
    byCharacters[characters]!.push(id)
  })
  let mask = new Uint32Array(words)
  return byCharacters.map((ids) => {
    mask = mask.slice()
    for (const id of ids) mask[id >>> 5]! |= 1 << (id & 31)
    return mask
  })
}

const leavingOf = ({ leaving, leavingCharacters, quotes }: Found, table: TokenTable): Leaving => {
  const numbers = new Map([['', 0]])
  const distinct: Uint8Array[] = [new Uint8Array(0)]
  const rests = leaving.map((id, i) => {
    const rest = table.bytesOf(id).subarray(quotes[i]! + 1)
    const name = String.fromCharCode(...rest)
    const known = numbers.get(name)
    if (known !== undefined) return known
    numbers.set(name, distinct.length)
    return distinct.push(rest) - 1
  })
  const restTable = new TokenTable(distinct)
  return {
    ids: Int32Array.from(leaving),
    characters: Uint16Array.from(leavingCharacters),
    rests: Int32Array.from(rests),
    restTrie: new TokenTrie(restTable, restTable.sorted()),
    restWords: Math.ceil(distinct.length / 32),
    whole: new TokenTrie(table, Uint32Array.from(leaving))
  }
}
