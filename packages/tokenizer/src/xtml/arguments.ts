import { XtmlError } from './errors.js'
import { unexpected } from './fields.js'
import { isObject, type JsonObject, JsonScanner, type JsonValue, parseJson, typeOf } from './json.js'
import { dumps, SPACED } from './python-json.js'

/** Published revisions of the official encoder; they differ in string arguments and blank reasoning. */
export type Revision = 'R1' | 'R2'

/** One `argument` element. */
export interface Argument {
  readonly key: string
  readonly type: string
  readonly text: string
}

/** The body of a call: `argument` elements, or the client's text for one `json` element. */
export type CallBody = readonly Argument[] | string

const PYTHON_SPACES =
  '\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a' +
  '\u2028\u2029\u202f\u205f\u3000'

/** Whether the text is empty or white space in the sense of Python `str.isspace`, which is not JavaScript's. */
export const isBlank = (text: string): boolean => {
  for (const char of text) if (!PYTHON_SPACES.includes(char)) return false
  return true
}

const fromObject = (object: JsonObject): readonly Argument[] =>
  [...object].map(([key, value]) => ({
    key,
    type: typeOf(value),
    text: typeof value === 'string' ? value : dumps(value, SPACED)
  }))

/** The result of `read`, or undefined when it finds that its text is not JSON. */
const unlessMalformed = <T>(read: () => T): T | undefined => {
  try {
    return read()
  } catch (error) {
    if (error instanceof XtmlError && error.code === 'ERR_XTML_JSON') return undefined
    throw error
  }
}

const fromTextR1 = (text: string, path: string): CallBody => {
  if (isBlank(text)) return []
  const value = unlessMalformed(() => parseJson(text, path))
  if (value === undefined) return text
  if (!isObject(value)) throw unexpected('ERR_XTML_ARGUMENTS', path, 'the JSON text of an object', value)
  return fromObject(value)
}

/** One level of an object: string values decoded, any other value as its own source text, repeated keys kept. */
const scanPairs = (text: string, path: string): readonly Argument[] => {
  const scanner = new JsonScanner(text, path, true)
  const pairs: Argument[] = []
  scanner.skipSpace()
  if (!scanner.take('{')) scanner.fail('"{"')
  scanner.skipSpace()
  if (scanner.take('}')) return pairs
  do {
    scanner.skipSpace()
    const key = scanner.string()
    scanner.skipSpace()
    if (!scanner.take(':')) scanner.fail('":"')
    scanner.skipSpace()
    const start = scanner.position
    const value = scanner.value()
    const source = text.slice(start, scanner.position)
    pairs.push({ key, type: typeOf(value), text: typeof value === 'string' ? value : source })
    scanner.skipSpace()
  } while (scanner.take(','))
  if (!scanner.take('}')) scanner.fail('"," or "}"')
  return pairs
}

const fromTextR2 = (text: string, path: string): CallBody => {
  if (text === '') return []
  return unlessMalformed(() => scanPairs(text, path)) ?? text
}

/**
 * The body that the arguments of a call render to. A string is the client's own JSON text: R2 keeps its literals,
 * R1 parses and prints it again; a string that is no JSON object text becomes one `json` element.
 * @throws ERR_XTML_ARGUMENTS for a list, a number or a boolean, and in R1 for JSON text of anything but an object
 */
export const callBody = (value: JsonValue | undefined, path: string, revision: Revision): CallBody => {
  if (value === undefined || value === null) return []
  if (isObject(value)) return fromObject(value)
  if (typeof value !== 'string') {
    throw unexpected('ERR_XTML_ARGUMENTS', path, 'an object, its JSON text, or null', value)
  }
  return revision === 'R1' ? fromTextR1(value, path) : fromTextR2(value, path)
}
