import { nextDown, nextUp } from './next-double.js'
import type { NumberBounds } from './number-range.js'
import { at, type PlainJson, type PlainObject } from './plain-json.js'
import { schemaError } from './schema-error.js'

/** A type of JSON Schema. */
export type TypeName = 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'object' | 'array'

/** What a schema says: one of these at a time. */
export type SchemaForm = 'any' | 'ref' | 'union' | 'values' | 'typed'

/** They say something to people, nothing about values. */
const ANNOTATIONS = [
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  '$schema',
  '$id',
  '$comment',
  '$defs',
  'definitions'
]
const KEYWORDS: Readonly<Record<TypeName, readonly string[]>> = {
  string: ['minLength', 'maxLength'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  integer: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  boolean: [],
  null: [],
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items', 'prefixItems', 'minItems', 'maxItems']
}
const TYPES = Object.keys(KEYWORDS) as readonly TypeName[]
const FORMS: readonly (readonly [SchemaForm, readonly string[]])[] = [
  ['ref', ['$ref']],
  ['union', ['anyOf', 'oneOf', 'allOf']],
  ['values', ['const', 'enum']]
]

/**
 * Which form a schema has. Only keywords of that form may stand in it, beside annotations.
 * @throws ERR_K3_SCHEMA with the pointer of a keyword that is not supported here
 */
export const checkKeywords = (schema: PlainObject, pointer: string): SchemaForm => {
  const keys = [...schema.keys()].filter((key) => !ANNOTATIONS.includes(key))
  for (const [form, names] of FORMS) {
    const name = names.find((one) => schema.has(one))
    if (name === undefined) continue
    const beside = keys.find((key) => key !== name && !(form === 'values' && key === 'type'))
    if (beside === undefined) return form
    throw schemaError(at(pointer, beside), `'${beside}' beside '${name}' is not supported`)
  }
  const known = Object.values(KEYWORDS).flat()
  for (const key of keys) {
    if (key === 'type' || known.includes(key)) continue
    throw schemaError(at(pointer, key), `'${key}' is not supported; it is refused rather than ignored`)
  }
  return keys.length === 0 ? 'any' : 'typed'
}

/** The types of a schema: those it names, or else those that its keywords are about. @throws ERR_K3_SCHEMA */
export const schemaTypes = (schema: PlainObject, pointer: string): readonly TypeName[] => {
  const given = schema.get('type')
  const place = at(pointer, 'type')
  if (given === undefined) {
    const implied = TYPES.filter((type) => KEYWORDS[type].some((key) => schema.has(key)))
    return implied.filter((type) => type !== 'integer')
  }
  const names: readonly PlainJson[] = Array.isArray(given) ? (given as readonly PlainJson[]) : [given]
  if (names.length === 0) throw schemaError(place, 'expected at least one type')
  const types = names.map((name) => {
    const type = TYPES.find((one) => one === name)
    if (type === undefined) throw schemaError(place, `expected ${TYPES.join(', ')}, found ${String(name)}`)
    return type
  })
  const allowed = types.flatMap((type) => KEYWORDS[type])
  for (const key of schema.keys()) {
    if (key === 'type' || key === 'const' || key === 'enum') continue
    if (ANNOTATIONS.includes(key) || allowed.includes(key)) continue
    throw schemaError(at(pointer, key), `'${key}' says nothing about type ${types.join(', ')}; remove it`)
  }
  return types.includes('number') ? types.filter((type) => type !== 'integer') : types
}

/** A count that a keyword gives. @throws ERR_K3_SCHEMA */
export const countOf = (schema: PlainObject, key: string, pointer: string, missing: number): number => {
  const value = schema.get(key)
  if (value === undefined) return missing
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw schemaError(at(pointer, key), 'expected a whole number of at least 0')
}

/** The bounds of a number; exclusive ones become the next double. @throws ERR_K3_SCHEMA */
export const numberBounds = (schema: PlainObject, pointer: string, integer: boolean): NumberBounds => {
  const bound = (key: string, missing: number): number => {
    const value = schema.get(key)
    if (value === undefined) return missing
    if (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER) return value
    throw schemaError(at(pointer, key), 'expected a number within ±(2^53 - 1)')
  }
  const min = bound('minimum', Number.NEGATIVE_INFINITY)
  const above = bound('exclusiveMinimum', Number.NEGATIVE_INFINITY)
  const max = bound('maximum', Number.POSITIVE_INFINITY)
  const below = bound('exclusiveMaximum', Number.POSITIVE_INFINITY)
  return {
    min: above >= min ? nextUp(above) : min,
    max: below <= max ? nextDown(below) : max,
    integer
  }
}
