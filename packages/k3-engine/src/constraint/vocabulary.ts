import type { Tokenizer } from '@k3/tokenizer'
import type { Cell, TextRun } from './automaton.js'
import { TextTokens } from './text-tokens.js'
import { byBytes, type Token, TokenTrie } from './token-trie.js'

const KINDS = ['json', 'key', 'raw'] as const

/** The tokens of a tokenizer, arranged for masks; all grammars share it. */
export class Vocabulary {
  /** The length of a mask: u32 [vocab / 32, rounded up]. */
  readonly words: number
  readonly #bytes: readonly (Uint8Array | undefined)[]
  readonly #trie: TokenTrie
  readonly #texts: ReadonlyMap<TextRun['kind'], TextTokens>

  /** Special tokens are no text: no grammar of bytes allows them. */
  constructor(tokenizer: Tokenizer, vocabSize: number) {
    const special = new Set(tokenizer.specials.values())
    const tokens: Token[] = []
    const table: (Uint8Array | undefined)[] = []
    for (let id = 0; id < tokenizer.vocabSize; id++) {
      const bytes = special.has(id) ? undefined : tokenizer.tokenBytes(id)
      table.push(bytes)
      if (bytes !== undefined) tokens.push({ id, bytes })
    }
    tokens.sort(byBytes)
    const words = Math.ceil(vocabSize / 32)
    this.words = words
    this.#bytes = table
    this.#trie = new TokenTrie(tokens)
    this.#texts = new Map(KINDS.map((kind) => [kind, new TextTokens(kind, tokens, words)]))
  }

  /** The bytes of a token; undefined for a special one. */
  bytesOf(id: number): Uint8Array | undefined {
    return this.#bytes[id]
  }

  /** The tokens that may come when this stack is the only one, as a new mask. */
  mask(cell: Cell): Uint32Array {
    const { text } = cell.frame
    if (text !== null) return this.#texts.get(text.kind)!.mask(cell, text)
    const words = new Uint32Array(this.words)
    this.#trie.allow(cell.alone, words)
    return words
  }
}

const vocabularies = new WeakMap<Tokenizer, Vocabulary>()

/** The arranged tokens, made when they are first asked for: some two seconds for the released vocabulary. */
export const vocabularyOf = (tokenizer: Tokenizer, vocabSize: number): Vocabulary => {
  let vocabulary = vocabularies.get(tokenizer)
  if (vocabulary === undefined) {
    vocabulary = new Vocabulary(tokenizer, vocabSize)
    vocabularies.set(tokenizer, vocabulary)
  }
  return vocabulary
}
