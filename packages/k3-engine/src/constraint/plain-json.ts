import { schemaError } from './schema-error.js'

/** JSON with its objects as maps, so that no key is special and integer-like ones keep their place. */
export type PlainJson = string | number | boolean | null | readonly PlainJson[] | PlainObject
export type PlainObject = ReadonlyMap<string, PlainJson>

const MAX_DEPTH = 200

/** Whether a value is an object. */
export const isPlainObject = (value: PlainJson | undefined): value is PlainObject => value instanceof Map

/** The step of a JSON pointer to `key`. */
export const at = (pointer: string, key: string | number): string =>
  `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`

/**
 * A schema as JSON: plain objects, or what `parseRequest` of `@k3/tokenizer/xtml` makes of JSON text.
 * @throws ERR_K3_SCHEMA for what JSON cannot hold
 */
export const plainJson = (value: unknown, pointer: string, depth = 0): PlainJson => {
  if (depth > MAX_DEPTH) throw schemaError(pointer, `it is nested beyond ${MAX_DEPTH} levels`)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (Array.isArray(value)) return value.map((item, i) => plainJson(item, at(pointer, i), depth + 1))
  if (typeof value === 'object') {
    if ('lexeme' in value && Object.getPrototypeOf(value) !== Object.prototype) return Number(value.lexeme)
    const entries = value instanceof Map ? [...(value as Map<string, unknown>)] : Object.entries(value)
    const present = entries.filter(([, item]) => item !== undefined)
    return new Map(present.map(([key, item]) => [key, plainJson(item, at(pointer, key), depth + 1)]))
  }
  throw schemaError(pointer, `a schema is JSON, and ${String(value)} is not`)
}
