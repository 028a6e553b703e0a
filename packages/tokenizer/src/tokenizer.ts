import { Encoder } from './encoder.js'
import { piecesOf } from './pieces.js'
import { parseRanks } from './ranks.js'
import { readSpecials } from './specials.js'
import { createStreamDecoder, decodeUtf8, type StreamDecoder } from './stream-decoder.js'
import { TokenBytes } from './token-bytes.js'
import { Vocabulary } from './vocabulary.js'

/** How `encode` reads the names of special tokens. */
export interface EncodeOptions {
  /** true: each of the 256 names becomes its id; false (the default): names are ordinary text. */
  readonly special?: boolean
}

/** Which ids `decode` and `stream` turn into text. */
export interface DecodeOptions {
  /** true: the ids that tokenizer_config.json flags `special` give nothing; false (the default): their names. */
  readonly skipSpecial?: boolean
}

/** Text to ids and back, exactly as the checkpoint's own tokenizer; safe to share, all calls are synchronous. */
export interface Tokenizer {
  /** Number of ids, special ones included: ids are 0 .. vocabSize - 1. */
  readonly vocabSize: number
  /** Name to id of all 256 special tokens, in id order. */
  readonly specials: ReadonlyMap<string, number>
  /**
   * The ids of a text, as a new array; nothing is added before or after it. Lone surrogates count as U+FFFD.
   * @throws TypeError (ERR_INVALID_ARG_TYPE) when `text` is no string
   */
  encode(text: string, options?: EncodeOptions): number[]
  /**
   * The pieces in which a text is encoded, for looking inside: those of the pre-tokenizer, with names of special tokens
   * as ordinary text and without the cuts of long texts.
   * @throws TypeError (ERR_INVALID_ARG_TYPE) when `text` is no string
   */
  pieces(text: string): string[]
  /**
   * The text of ids: UTF-8 with U+FFFD for each maximal ill-formed part; a leading U+FEFF is kept.
   * @throws ERR_TOKENIZER_ID, TypeError (ERR_INVALID_ARG_TYPE) when `ids` cannot be iterated
   */
  decode(ids: Iterable<number>, options?: DecodeOptions): string
  /** The bytes of ids, u8, in a new array. @throws as `decode` */
  decodeBytes(ids: Iterable<number>): Uint8Array
  /** The bytes of one id, u8, in a new array; a special id gives its name. @throws ERR_TOKENIZER_ID */
  tokenBytes(id: number): Uint8Array
  /** A decoder for ids that arrive one by one; independent of others. */
  stream(options?: DecodeOptions): StreamDecoder
}

const wrongType = (expected: string, found: unknown): TypeError =>
  Object.assign(new TypeError(`expected ${expected}, found ${found === null ? 'null' : typeof found}`), {
    code: 'ERR_INVALID_ARG_TYPE'
  })

const refuseNoString = (text: unknown): void => {
  if (typeof text !== 'string') throw wrongType('text to be a string', text)
}

const NOTHING: ReadonlySet<number> = new Set()

class RankTokenizer implements Tokenizer {
  readonly vocabSize: number
  readonly specials: ReadonlyMap<string, number>
  readonly #encoder: Encoder
  readonly #tokens: TokenBytes
  readonly #flagged: ReadonlySet<number>

  constructor(ranks: Uint8Array, config: unknown, files: TokenizerFiles) {
    const parsed = parseRanks(ranks, files.ranks)
    const specials = readSpecials(config, parsed.size, files.config)
    this.specials = specials.ids
    this.#flagged = specials.flagged
    this.#encoder = new Encoder(new Vocabulary(parsed, files.ranks), specials.ids)
    this.#tokens = new TokenBytes(parsed, specials.ids.keys())
    this.vocabSize = this.#tokens.size
  }

  encode(text: string, options: EncodeOptions = {}): number[] {
    refuseNoString(text)
    return this.#encoder.encode(text, options.special === true)
  }

  pieces(text: string): string[] {
    refuseNoString(text)
    return piecesOf(text)
  }

  decode(ids: Iterable<number>, options: DecodeOptions = {}): string {
    return decodeUtf8(this.#join(ids, this.#dropped(options)))
  }

  decodeBytes(ids: Iterable<number>): Uint8Array {
    return this.#join(ids, NOTHING)
  }

  tokenBytes(id: number): Uint8Array {
    return this.#tokens.of(id).slice()
  }

  stream(options: DecodeOptions = {}): StreamDecoder {
    return createStreamDecoder(this.#tokens, this.#dropped(options))
  }

  #dropped(options: DecodeOptions): ReadonlySet<number> {
    return options.skipSpecial === true ? this.#flagged : NOTHING
  }

  #join(ids: Iterable<number>, dropped: ReadonlySet<number>): Uint8Array {
    if (typeof ids?.[Symbol.iterator] !== 'function') throw wrongType('ids to be iterable', ids)
    let bytes = new Uint8Array(1024)
    let length = 0
    for (const id of ids) {
      const token = this.#tokens.of(id)
      if (dropped.has(id)) continue
      if (length + token.length > bytes.length) {
        const larger = new Uint8Array(2 * (length + token.length))
        larger.set(bytes)
        bytes = larger
      }
      bytes.set(token, length)
      length += token.length
    }
    return bytes.slice(0, length)
  }
}

/** The names under which errors report the two sources. */
export interface TokenizerFiles {
  readonly ranks: string
  readonly config: string
}

/** A tokenizer from the bytes of the two files, which errors call `files`. */
export const tokenizerFrom = (ranks: Uint8Array, config: unknown, files: TokenizerFiles): Tokenizer =>
  new RankTokenizer(ranks, config, files)
