import { XtmlError, type XtmlErrorCode } from './errors.js'
import { isList, isObject, JsonNumber, type JsonObject, type JsonValue, typeOf } from './json.js'
import { numberText } from './python-json.js'

/** An object of the request and where it stands, so that every refusal can say which field is wrong. */
export class Fields {
  readonly object: JsonObject
  readonly path: string
  private readonly code: XtmlErrorCode

  /** @throws `code` when `value` is no object; `code` is also what the accessors throw */
  constructor(value: JsonValue | undefined, path: string, code: XtmlErrorCode) {
    if (!isObject(value)) throw unexpected(code, path, 'an object', value)
    this.object = value
    this.path = path
    this.code = code
  }

  has(key: string): boolean {
    return this.object.has(key)
  }

  get(key: string): JsonValue | undefined {
    return this.object.get(key)
  }

  /** The place of a field. */
  at(key: string): string {
    return `${this.path}.${key}`
  }

  /** A string, or null when the field is null or absent. */
  text(key: string): string | null {
    const value = this.get(key)
    if (value === undefined || value === null) return null
    if (typeof value !== 'string') throw unexpected(this.code, this.at(key), 'a string or null', value)
    return value
  }

  /** A list, empty when the field is null or absent. */
  list(key: string): readonly JsonValue[] {
    const value = this.get(key)
    if (value === undefined || value === null) return []
    if (!isList(value)) throw unexpected(this.code, this.at(key), 'a list or null', value)
    return value
  }

  /** A boolean, `missing` when the field is absent. */
  flag(key: string, missing: boolean): boolean {
    const value = this.get(key)
    if (value === undefined) return missing
    if (typeof value !== 'boolean') throw unexpected(this.code, this.at(key), 'true or false', value)
    return value
  }

  /** The text of an id (a string, or a number as Python prints it), or null when it is null or absent. */
  id(key: string): string | null {
    const value = this.get(key)
    if (value === undefined || value === null) return null
    if (typeof value === 'string') return value
    if (value instanceof JsonNumber) return numberText(value.lexeme)
    throw unexpected(this.code, this.at(key), 'a string, a number or null', value)
  }
}

/** The refusal of a value of the wrong kind. */
export const unexpected = (
  code: XtmlErrorCode,
  path: string,
  expected: string,
  value: JsonValue | undefined
): XtmlError => {
  let found = 'nothing'
  if (typeof value === 'string') found = JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  else if (value !== undefined) found = typeOf(value) === 'null' ? 'null' : `a value of type ${typeOf(value)}`
  return new XtmlError(code, path, `expected ${expected}, found ${found}`)
}
