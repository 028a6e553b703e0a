import { Buffer, isUtf8 } from 'node:buffer'
import { printable, quote, SafetensorsError, type SafetensorsErrorCode } from './errors.ts'
import { MAX_JSON_DEPTH } from './limits.ts'

export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
export const OPEN_BRACKET = 0x5b
export const CLOSE_BRACKET = 0x5d
export const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const SPACE = 0x20

const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/
const LITERAL = /^(?:true|false|null)/
const LONGEST_LITERAL = 5
const SHOWN_TEXT_BYTES = 40

const isDigit = (byte: number): boolean => byte >= ZERO && byte <= 0x39

/** Codes for a value that should have been an integer >= 0: the rule differs between shapes and offsets. */
export interface IntegerRule {
  subject: string
  notInteger: SafetensorsErrorCode
  negative: SafetensorsErrorCode
}

/**
 * Strict JSON over bytes (RFC 8259 and UTF-8), pulled by the caller one token at a time.
 * It exists because JSON.parse hides what the format forbids: repeated keys, 4.0 and 1e3 in place of integers,
 * integers above 2^53, and the byte offset of all of them. It builds no tree.
 */
export class JsonScanner {
  /** Index of the next byte. */
  pos = 0
  /** Tensor that errors name. */
  tensor: string | null = null

  private readonly bytes: Buffer
  private readonly end: number
  private readonly file: string | null
  private readonly base: number
  private stringStart = 0
  private stringEnd = 0
  private stringIsAscii = true
  private unescaped: string | null = null

  /** @param base offset of `bytes[0]` in the file */
  constructor(bytes: Uint8Array, file: string | null, base: number) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.end = bytes.byteLength
    this.file = file
    this.base = base
  }

  /** An error that lies at index `at` of the text. */
  error(code: SafetensorsErrorCode, at: number, message: string): SafetensorsError {
    return new SafetensorsError(code, message, {
      file: this.file,
      tensor: this.tensor,
      offset: this.base + at
    })
  }

  private syntaxError(expected: string): SafetensorsError {
    if (this.pos >= this.end) {
      return this.error(
        'ERR_SAFETENSORS_JSON_TRUNCATED',
        this.end,
        `expected ${expected}, found the end of the text: it is cut short or its length is wrong`
      )
    }
    const byte = this.bytes[this.pos]!
    const found = byte > SPACE && byte < 0x7f ? `'${String.fromCharCode(byte)}'` : `byte ${byte}`
    return this.error('ERR_SAFETENSORS_JSON_SYNTAX', this.pos, `expected ${expected}, found ${found}`)
  }

  /** Skips JSON whitespace; returns the byte after it without consuming it, -1 at the end. */
  peek(): number {
    const { bytes, end } = this
    let p = this.pos
    while (p < end) {
      const byte = bytes[p]!
      if (byte !== SPACE && byte !== 0x0a && byte !== 0x09 && byte !== 0x0d) break
      p++
    }
    this.pos = p
    return p < end ? bytes[p]! : -1
  }

  /** Consumes `byte`, after whitespace. */
  consume(byte: number): void {
    if (this.peek() !== byte) throw this.syntaxError(`'${String.fromCharCode(byte)}'`)
    this.pos++
  }

  /**
   * Steps inside an object or array whose opening byte is consumed: true in front of the next member or element,
   * false after consuming `close`.
   */
  next(close: number, first: boolean): boolean {
    const byte = this.peek()
    if (byte === close) {
      this.pos++
      return false
    }
    if (!first) {
      if (byte !== COMMA) throw this.syntaxError(`',' or '${String.fromCharCode(close)}'`)
      this.pos++
      this.peek()
    }
    return true
  }

  /** Consumes a member name and its colon; read it with `string()` or `stringIs()`. */
  scanKey(): void {
    this.scanString()
    this.consume(COLON)
  }

  /** Consumes one string and checks it; read it with `string()` or `stringIs()` before the next one. */
  scanString(): void {
    if (this.peek() !== QUOTE) throw this.syntaxError('a string')
    const { bytes, end } = this
    const start = this.pos + 1
    let escaped = false
    let union = 0
    let p = start
    for (; p < end; p++) {
      const byte = bytes[p]!
      if (byte === QUOTE) break
      if (byte < SPACE) {
        throw this.error('ERR_SAFETENSORS_JSON_STRING', p, `control byte ${byte} inside a string: escape it`)
      }
      union |= byte
      if (byte === BACKSLASH) {
        escaped = true
        p++
      }
    }
    this.pos = p
    if (p >= end) throw this.syntaxError('the closing quote of a string')
    this.pos = p + 1
    this.stringStart = start
    this.stringEnd = p
    this.stringIsAscii = union < 0x80
    if (!this.stringIsAscii && !isUtf8(bytes.subarray(start, p))) throw this.utf8Error(start)
    this.unescaped = escaped ? this.unescape() : null
  }

  private utf8Error(start: number): SafetensorsError {
    const { bytes } = this
    const sequenceAt = (at: number) => [1, 2, 3, 4].find((length) => isUtf8(bytes.subarray(at, at + length)))
    let p = start
    for (let length = sequenceAt(p); length !== undefined; length = sequenceAt(p)) p += length
    return this.error('ERR_SAFETENSORS_UTF8', p, `byte ${bytes[p]} does not start a UTF-8 sequence`)
  }

  /** JSON.parse knows every escape; half a surrogate pair is all it lets through and UTF-8 cannot hold. */
  private unescape(): string {
    const at = this.stringStart - 1
    let value: string
    try {
      value = JSON.parse(this.bytes.toString('utf8', at, this.stringEnd + 1))
    } catch {
      throw this.error('ERR_SAFETENSORS_JSON_STRING', at, 'invalid escape inside a string')
    }
    if (/\p{Surrogate}/u.test(value)) {
      throw this.error('ERR_SAFETENSORS_JSON_STRING', at, 'half a surrogate pair inside a string')
    }
    return value
  }

  /** Value of the string scanned last. */
  string(): string {
    if (this.unescaped !== null) return this.unescaped
    return this.bytes.toString(this.stringIsAscii ? 'latin1' : 'utf8', this.stringStart, this.stringEnd)
  }

  /** Compares the string scanned last with an ASCII text, without building it. */
  stringIs(ascii: string): boolean {
    if (this.unescaped !== null) return this.unescaped === ascii
    const { bytes, stringStart } = this
    if (this.stringEnd - stringStart !== ascii.length) return false
    for (let i = 0; i < ascii.length; i++) if (bytes[stringStart + i] !== ascii.charCodeAt(i)) return false
    return true
  }

  /** Consumes an integer in 0 .. 2^53 - 1 written as one. */
  integer(rule: IntegerRule): number {
    if (!isDigit(this.peek())) throw this.notUnsigned(rule)
    const { bytes, end } = this
    const start = this.pos
    let p = start
    let value = 0
    for (; p < end; p++) {
      const byte = bytes[p]!
      if (!isDigit(byte)) break
      value = value * 10 + (byte - ZERO)
    }
    const after = p < end ? bytes[p]! : -1
    const leadingZero = bytes[start] === ZERO && p > start + 1
    if (after === DOT || (after | 0x20) === 0x65 || leadingZero) throw this.notUnsigned(rule)
    this.pos = p
    if (value > Number.MAX_SAFE_INTEGER) {
      const text = bytes.toString('latin1', start, Math.min(p, start + SHOWN_TEXT_BYTES))
      throw this.error(
        'ERR_SAFETENSORS_INTEGER_TOO_LARGE',
        start,
        `${rule.subject}: expected an integer below 2^53, found ${text}`
      )
    }
    return value
  }

  /** Faults of JSON itself come first, so the value is skipped before it is refused. */
  private notUnsigned(rule: IntegerRule): SafetensorsError {
    const at = this.pos
    this.skipValue()
    const text = this.text(at)
    if (/^-\d+$/.test(text)) {
      return this.error(rule.negative, at, `${rule.subject}: expected an integer >= 0, found ${text}`)
    }
    return this.error(
      rule.notInteger,
      at,
      `${rule.subject}: expected an integer written in digits only, found ${text}`
    )
  }

  /** Source text from `from` to the current byte, cut to what a message can hold. */
  text(from: number): string {
    return printable(this.bytes.toString('latin1', from, Math.min(this.pos, from + SHOWN_TEXT_BYTES)))
  }

  /** Consumes an object; calls `visit` after each member's colon, with the name and its index. Names may not repeat. */
  members(visit: (name: string, at: number) => void): void {
    this.consume(OPEN_BRACE)
    const seen = new Set<string>()
    for (let first = true; this.next(CLOSE_BRACE, first); first = false) {
      const at = this.pos
      this.scanKey()
      const name = this.string()
      this.addMember(seen, name, at)
      visit(name, at)
    }
  }

  /** Enters `name` into the names of one object. */
  addMember(seen: Set<string>, name: string, at: number): void {
    if (seen.has(name)) throw this.duplicateMember(name, at)
    seen.add(name)
  }

  duplicateMember(name: string, at: number): SafetensorsError {
    return this.error(
      'ERR_SAFETENSORS_DUPLICATE_MEMBER',
      at,
      `member ${quote(name)} stands twice in one object: which one is meant is ambiguous`
    )
  }

  /** Consumes any value and checks that it is JSON. */
  skipValue(depth = 1): void {
    const byte = this.peek()
    if (byte === QUOTE) this.scanString()
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.skipContainer(byte, depth)
    else if (byte === MINUS || isDigit(byte)) this.skipNumber()
    else this.skipLiteral()
  }

  private skipLiteral(): void {
    const match = LITERAL.exec(this.bytes.toString('latin1', this.pos, this.pos + LONGEST_LITERAL))
    if (match === null) throw this.syntaxError('a value')
    this.pos += match[0].length
  }

  private skipContainer(open: number, depth: number): void {
    if (depth > MAX_JSON_DEPTH) {
      throw this.error(
        'ERR_SAFETENSORS_JSON_DEPTH',
        this.pos,
        `nested deeper than ${MAX_JSON_DEPTH} levels: no header needs that`
      )
    }
    if (open === OPEN_BRACE) {
      this.members(() => this.skipValue(depth + 1))
      return
    }
    this.consume(OPEN_BRACKET)
    for (let first = true; this.next(CLOSE_BRACKET, first); first = false) this.skipValue(depth + 1)
  }

  private skipNumber(): void {
    const { bytes, end } = this
    let p = this.pos
    while (p < end && isNumberByte(bytes[p]!)) p++
    const match = NUMBER.exec(bytes.toString('latin1', this.pos, p))
    this.pos += match === null ? 1 : match[0].length
    if (match === null || this.pos !== p) throw this.syntaxError('a number in JSON notation')
  }
}

function isNumberByte(byte: number): boolean {
  return isDigit(byte) || byte === MINUS || byte === DOT || byte === 0x2b || (byte | 0x20) === 0x65
}
