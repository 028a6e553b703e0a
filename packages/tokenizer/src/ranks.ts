import { TokenizerError, type TokenizerErrorCode } from './errors.js'

const LF = 0x0a
const BLANK = 0x20
const ZERO = 0x30
const PAD = 0x3d
const NOT_BASE64 = 255
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** The tokens of a ranks file, in rank order: token `i` is `bytes[offsets[i] .. offsets[i + 1])`. */
export interface Ranks {
  readonly bytes: Uint8Array
  readonly offsets: Uint32Array // [size + 1]
  readonly size: number
}

const sextetTable = (): Uint8Array => {
  const table = new Uint8Array(256).fill(NOT_BASE64)
  for (let i = 0; i < ALPHABET.length; i++) table[ALPHABET.charCodeAt(i)] = i
  return table
}

const refuse = (code: TokenizerErrorCode, file: string, line: number, problem: string): never => {
  throw new TokenizerError(code, `${file}, line ${line}: ${problem}`, { file, line })
}

const countLines = (source: Uint8Array, file: string): number => {
  let lines = 0
  for (let i = 0; i < source.length; i++) if (source[i] === LF) lines++
  if (source.length === 0)
    refuse('ERR_TOKENIZER_LINE', file, 1, 'expected a token and its rank, found an empty file')
  if (source[source.length - 1] !== LF) {
    refuse(
      'ERR_TOKENIZER_LINE',
      file,
      lines + 1,
      'expected a final line feed, found the end; is the file cut short?'
    )
  }
  return lines
}

/** Reads a ranks file, which ends with a line feed, line by line. */
class RanksReader {
  readonly bytes: Uint8Array
  lengthBytes = 0
  at = 0
  readonly #source: Uint8Array
  readonly #sextets = sextetTable()

  constructor(source: Uint8Array) {
    this.#source = source
    this.bytes = new Uint8Array(source.length)
  }

  /** Appends the next line's token to `bytes`; false when the line is not `<base64 token> <rank>` in canonical form. */
  readLine(rank: number): boolean {
    return this.#readToken() && this.#source[this.at++] === BLANK && this.#readRank() === rank
  }

  #readToken(): boolean {
    const source = this.#source
    const sextets = this.#sextets
    const bytes = this.bytes
    const start = this.lengthBytes
    let length = start
    let at = this.at
    for (;;) {
      const a = sextets[source[at]!]!
      if (a === NOT_BASE64) break
      const b = sextets[source[at + 1]!]!
      const c = sextets[source[at + 2]!]!
      const d = sextets[source[at + 3]!]!
      bytes[length++] = (a << 2) | (b >> 4)
      at += 4
      if ((b | c | d) !== NOT_BASE64) {
        bytes[length++] = (b << 4) | (c >> 2)
        bytes[length++] = (c << 6) | d
        continue
      }
      if (b === NOT_BASE64 || source[at - 1] !== PAD) return false
      if (c === NOT_BASE64 ? source[at - 2] !== PAD || (b & 15) !== 0 : (c & 3) !== 0) return false
      if (c !== NOT_BASE64) bytes[length++] = (b << 4) | (c >> 2)
      break
    }
    this.at = at
    this.lengthBytes = length
    return length > start
  }

  /** Digits up to a line feed, without a leading zero; -1 for anything else. */
  #readRank(): number {
    const source = this.#source
    const from = this.at
    let rank = 0
    let at = from
    for (; source[at] !== LF; at++) {
      const digit = source[at]! - ZERO
      if (digit < 0 || digit > 9 || (rank === 0 && at > from)) return -1
      rank = rank * 10 + digit
    }
    this.at = at + 1
    return at > from ? rank : -1
  }
}

/** Says what is wrong with the line that begins at `from`. */
const explain = (source: Uint8Array, from: number, rank: number, file: string): never => {
  const line = rank + 1
  const text = Buffer.from(source.subarray(from, source.indexOf(LF, from))).toString('latin1')
  if (text.endsWith('\r')) {
    return refuse(
      'ERR_TOKENIZER_LINE',
      file,
      line,
      'expected LF, found CR LF; fetch the file without conversion'
    )
  }
  const blank = text.indexOf(' ')
  if (blank < 0) {
    return refuse('ERR_TOKENIZER_LINE', file, line, 'expected `<base64 token> <rank>`, found no space')
  }
  const token = text.slice(0, blank)
  if (token === '' || Buffer.from(token, 'base64').toString('base64') !== token) {
    return refuse('ERR_TOKENIZER_BASE64', file, line, 'expected a token in padded standard base64')
  }
  const found = JSON.stringify(text.slice(blank + 1, blank + 24))
  return refuse('ERR_TOKENIZER_RANK', file, line, `expected rank ${rank}, dense and in order, found ${found}`)
}

/**
 * Parses a tiktoken ranks file: one `<base64 token> <rank>` a line, line feeds only, ranks 0, 1, 2, … in order.
 * @param source u8, the whole file
 * @throws ERR_TOKENIZER_LINE, ERR_TOKENIZER_BASE64, ERR_TOKENIZER_RANK, each with `line`
 */
export const parseRanks = (source: Uint8Array, file: string): Ranks => {
  const size = countLines(source, file)
  const offsets = new Uint32Array(size + 1)
  const reader = new RanksReader(source)
  for (let rank = 0; rank < size; rank++) {
    const from = reader.at
    if (!reader.readLine(rank)) explain(source, from, rank, file)
    offsets[rank + 1] = reader.lengthBytes
  }
  return { bytes: reader.bytes.slice(0, reader.lengthBytes), offsets, size }
}
