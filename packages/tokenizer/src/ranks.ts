import { TokenizerError, type TokenizerErrorCode } from './errors.js'

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
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
  for (let i = source.indexOf(LF); i >= 0; i = source.indexOf(LF, i + 1)) lines++
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

/** Decodes canonical padded base64 into `out` at `length`; returns the new length, or -1 when it is not base64. */
const decodeBase64 = (
  source: Uint8Array,
  [from, to]: readonly [number, number],
  sextets: Uint8Array,
  out: Uint8Array,
  length: number
): number => {
  if (to === from || (to - from) % 4 !== 0) return -1
  const padding = source[to - 1] !== PAD ? 0 : source[to - 2] !== PAD ? 1 : 2
  let at = length
  for (let i = from; i < to; i += 4) {
    const last = i + 4 === to
    const a = sextets[source[i]!]!
    const b = sextets[source[i + 1]!]!
    const c = last && padding === 2 ? 0 : sextets[source[i + 2]!]!
    const d = last && padding > 0 ? 0 : sextets[source[i + 3]!]!
    if ((a | b | c | d) > 63) return -1
    out[at++] = (a << 2) | (b >> 4)
    out[at++] = (b << 4) | (c >> 2)
    out[at++] = (c << 6) | d
  }
  const end = at - padding
  for (let i = end; i < at; i++) if (out[i] !== 0) return -1 // bits beyond the last byte
  return end
}

/** Reads the decimal rank in `source[from .. to)`; returns -1 for anything but digits without a leading zero. */
const readRank = (source: Uint8Array, from: number, to: number): number => {
  if (from === to || to - from > 9 || (source[from] === ZERO && to - from > 1)) return -1
  let rank = 0
  for (let i = from; i < to; i++) {
    const digit = source[i]! - ZERO
    if (digit < 0 || digit > 9) return -1
    rank = rank * 10 + digit
  }
  return rank
}

/**
 * Parses a tiktoken ranks file: one `<base64 token> <rank>` a line, line feeds only, ranks 0, 1, 2, … in order.
 * @param source u8, the whole file
 * @throws ERR_TOKENIZER_LINE, ERR_TOKENIZER_BASE64, ERR_TOKENIZER_RANK, each with `line`
 */
export const parseRanks = (source: Uint8Array, file: string): Ranks => {
  const size = countLines(source, file)
  const bytes = new Uint8Array(source.length)
  const offsets = new Uint32Array(size + 1)
  const sextets = sextetTable()
  let at = 0
  for (let rank = 0; rank < size; rank++) {
    const line = rank + 1
    const lineEnd = source.indexOf(LF, at)
    let space = at
    while (space < lineEnd && source[space] !== SPACE) space++
    if (source[lineEnd - 1] === CR) {
      refuse(
        'ERR_TOKENIZER_LINE',
        file,
        line,
        'expected a line feed, found CR LF; fetch the file without conversion'
      )
    }
    if (space === lineEnd) {
      refuse('ERR_TOKENIZER_LINE', file, line, 'expected `<base64 token> <rank>`, found no space')
    }
    const length = decodeBase64(source, [at, space], sextets, bytes, offsets[rank]!)
    if (length < 0) refuse('ERR_TOKENIZER_BASE64', file, line, 'expected a token in padded standard base64')
    offsets[line] = length
    if (readRank(source, space + 1, lineEnd) !== rank) {
      const found = JSON.stringify(
        String.fromCharCode(...source.subarray(space + 1, Math.min(lineEnd, space + 24)))
      )
      refuse(
        'ERR_TOKENIZER_RANK',
        file,
        line,
        `expected rank ${rank} (ranks are dense and in order), found ${found}`
      )
    }
    at = lineEnd + 1
  }
  return { bytes: bytes.slice(0, offsets[size]), offsets, size }
}
