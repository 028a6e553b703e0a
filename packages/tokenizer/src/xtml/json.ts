import { XtmlError } from './errors.js'

/** A number as it was written: a JSON number, `NaN`, `Infinity` or `-Infinity`. */
export class JsonNumber {
  readonly lexeme: string

  constructor(lexeme: string) {
    this.lexeme = lexeme
  }
}

/** A JSON value that keeps what JavaScript objects lose: number lexemes and the order of integer-like keys. */
export type JsonValue = string | boolean | null | JsonNumber | readonly JsonValue[] | JsonObject

/** An object. A repeated key keeps its first position and its last value, as in Python. */
export type JsonObject = ReadonlyMap<string, JsonValue>

/** Python refuses at about the same depth; recursion this deep stays far from the end of the JavaScript stack. */
export const MAX_DEPTH = 1000

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y
const NO_ESCAPE = /[^"\\]*/y
const NO_ESCAPE_OR_CONTROL = /[ !#-[\]-\uffff]*/y
const WORDS: ReadonlyMap<string, JsonValue> = new Map<string, JsonValue>([
  ['null', null],
  ['true', true],
  ['false', false],
  ['NaN', new JsonNumber('NaN')],
  ['Infinity', new JsonNumber('Infinity')],
  ['-Infinity', new JsonNumber('-Infinity')]
])
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t'
}

/**
 * Reads JSON the way Python's `json` module does: `NaN` and the infinities are numbers, white space is space, tab,
 * line feed and carriage return, and a string may hold raw control characters when `rawControls` is set.
 */
export class JsonScanner {
  position = 0
  private readonly text: string
  private readonly name: string
  private readonly rawControls: boolean

  /** `name` is what errors call the text. */
  constructor(text: string, name: string, rawControls: boolean) {
    this.text = text
    this.name = name
    this.rawControls = rawControls
  }

  private get place(): string {
    return `${this.name}, offset ${this.position}`
  }

  fail(expected: string): never {
    const found = this.position < this.text.length ? JSON.stringify(this.text[this.position]) : 'the end'
    throw new XtmlError('ERR_XTML_JSON', this.place, `expected ${expected}, found ${found}`)
  }

  skipSpace(): void {
    while (' \t\n\r'.includes(this.text.charAt(this.position)) && this.position < this.text.length)
      this.position++
  }

  /** Consumes `char` if it is next. */
  take(char: string): boolean {
    if (this.text[this.position] !== char) return false
    this.position++
    return true
  }

  value(depth = 0): JsonValue {
    if (depth > MAX_DEPTH) {
      const text = `nesting goes beyond ${MAX_DEPTH} levels; flatten the value`
      throw new XtmlError('ERR_XTML_JSON_DEPTH', this.place, text)
    }
    const first = this.text[this.position]
    if (first === '"') return this.string()
    if (first === '{') return this.object(depth)
    if (first === '[') return this.array(depth)
    const word = this.word()
    return word === undefined ? this.number() : word
  }

  string(): string {
    if (!this.take('"')) this.fail('a string')
    let decoded = ''
    for (;;) {
      decoded += this.plainRun()
      const char = this.text[this.position]
      if (char === undefined) this.fail('the closing quote of a string')
      if (char < ' ' && !this.rawControls) this.fail('an escaped control character')
      this.position++
      if (char === '"') return decoded
      decoded += this.escape()
    }
  }

  /** The characters up to the next one that ends a string or has to be decoded. */
  private plainRun(): string {
    const run = this.rawControls ? NO_ESCAPE : NO_ESCAPE_OR_CONTROL
    run.lastIndex = this.position
    run.test(this.text)
    const from = this.position
    this.position = run.lastIndex
    return this.text.slice(from, this.position)
  }

  private escape(): string {
    const char = this.text.charAt(this.position)
    if (char === 'u') {
      const digits = this.text.slice(this.position + 1, this.position + 5)
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.fail('four hexadecimal digits after \\u')
      this.position += 5
      return String.fromCharCode(Number.parseInt(digits, 16))
    }
    const plain = ESCAPES[char]
    if (plain === undefined) this.fail('an escape sequence')
    this.position++
    return plain
  }

  private object(depth: number): JsonObject {
    const entries = new Map<string, JsonValue>()
    this.position++
    this.skipSpace()
    if (this.take('}')) return entries
    do {
      this.skipSpace()
      const key = this.string()
      this.skipSpace()
      if (!this.take(':')) this.fail('":"')
      this.skipSpace()
      entries.set(key, this.value(depth + 1))
      this.skipSpace()
    } while (this.take(','))
    if (!this.take('}')) this.fail('"," or "}"')
    return entries
  }

  private array(depth: number): readonly JsonValue[] {
    const items: JsonValue[] = []
    this.position++
    this.skipSpace()
    if (this.take(']')) return items
    do {
      this.skipSpace()
      items.push(this.value(depth + 1))
      this.skipSpace()
    } while (this.take(','))
    if (!this.take(']')) this.fail('"," or "]"')
    return items
  }

  private word(): JsonValue | undefined {
    for (const [word, value] of WORDS) {
      if (this.text.startsWith(word, this.position)) {
        this.position += word.length
        return value
      }
    }
    return undefined
  }

  private number(): JsonNumber {
    NUMBER.lastIndex = this.position
    const match = NUMBER.exec(this.text)
    if (match === null) this.fail('a JSON value')
    this.position = NUMBER.lastIndex
    return new JsonNumber(match[0])
  }
}

/**
 * Parses a whole JSON text, which errors call `name`, with strict strings.
 * @throws ERR_XTML_JSON with the offset of the first character that does not fit
 * @throws ERR_XTML_JSON_DEPTH
 */
export const parseJson = (text: string, name: string): JsonValue => {
  const scanner = new JsonScanner(text, name, false)
  scanner.skipSpace()
  const value = scanner.value()
  scanner.skipSpace()
  if (scanner.position < text.length) scanner.fail('the end of the text')
  return value
}

/** Whether a value is a JSON object. */
export const isObject = (value: JsonValue | undefined): value is JsonObject => value instanceof Map

/** Whether a value is a JSON array. */
export const isList = (value: JsonValue | undefined): value is readonly JsonValue[] => Array.isArray(value)

/** The kind of a value in the words of JSON Schema and of the `type` attribute. */
export const typeOf = (value: JsonValue): 'null' | 'boolean' | 'string' | 'number' | 'array' | 'object' => {
  if (value === null) return 'null'
  if (typeof value === 'boolean') return 'boolean'
  if (typeof value === 'string') return 'string'
  if (value instanceof JsonNumber) return 'number'
  return isList(value) ? 'array' : 'object'
}
