import type { Tokenizer } from '@k3/tokenizer'
import type { Cell, TextRun } from './automaton.js'
import { TextTokens } from './text-tokens.js'
import { TokenTable } from './token-table.js'
import { TokenTrie } from './token-trie.js'

const KINDS = ['json', 'key', 'raw'] as const

/** The tokens of a tokenizer, arranged for masks; all grammars share it. */
export class Vocabulary {
  /** The length of a mask: u32 [vocab / 32, rounded up]. */
  readonly words: number
  readonly #table: TokenTable
  readonly #trie: TokenTrie
  readonly #texts: ReadonlyMap<TextRun['kind'], TextTokens>

  /** Special tokens are no text: no grammar of bytes allows them. */
  constructor(tokenizer: Tokenizer, vocabSize: number) {
    const words = Math.ceil(vocabSize / 32)
    this.words = words
    this.#table = new TokenTable(textTokens(tokenizer))
    this.#trie = new TokenTrie(this.#table, this.#table.sorted())
    this.#texts = new Map(KINDS.map((kind) => [kind, new TextTokens(kind, this.#table, this.#trie, words)]))
  }

  /** The bytes of a token; undefined for a special one. */
  bytesOf(id: number): Uint8Array | undefined {
    const bytes = this.#table.bytesOf(id)
    return bytes.length === 0 ? undefined : bytes
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

function* textTokens(tokenizer: Tokenizer): Generator<Uint8Array> {
  const special = new Set(tokenizer.specials.values())
  const none = new Uint8Array(0)
  for (let id = 0; id < tokenizer.vocabSize; id++) yield special.has(id) ? none : tokenizer.tokenBytes(id)
}

const vocabularies = new WeakMap<Tokenizer, Vocabulary>()

/** The arranged tokens, made when they are first asked for: a third of a second for the released vocabulary. */
export const vocabularyOf = (tokenizer: Tokenizer, vocabSize: number): Vocabulary => {
  let vocabulary = vocabularies.get(tokenizer)
  if (vocabulary === undefined) {
    vocabulary = new Vocabulary(tokenizer, vocabSize)
    vocabularies.set(tokenizer, vocabulary)
  }
  return vocabulary
}
