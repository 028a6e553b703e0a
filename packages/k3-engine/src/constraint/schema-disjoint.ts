import { isPlainObject, type PlainJson, type PlainObject } from './plain-json.js'

const STEPS = 16

/** Whether no value can be accepted by two of the schemas, as far as types and required constants tell. */
export const disjoint = (branches: readonly PlainJson[], root: PlainJson): boolean =>
  branches.every((one, i) => branches.slice(i + 1).every((other) => apart(one, other, root)))

const apart = (one: PlainJson, other: PlainJson, root: PlainJson): boolean => {
  if (one === false || other === false) return true
  const [a, b] = [resolved(one, root), resolved(other, root)]
  if (a === null || b === null) return false
  const [types, otherTypes] = [typesOf(a), typesOf(b)]
  if (types !== null && otherTypes !== null && !types.some((type) => otherTypes.includes(type))) return true
  const [values, otherValues] = [constantsOf(a), constantsOf(b)]
  if (values !== null && otherValues !== null) return !values.some((value) => otherValues.includes(value))
  return requiredConstantsDiffer(a, b, root)
}

/** Two objects that both require a key whose constants differ. Both have to be objects for that to tell them apart. */
const requiredConstantsDiffer = (a: PlainObject, b: PlainObject, root: PlainJson): boolean => {
  if (a.get('type') !== 'object' || b.get('type') !== 'object') return false
  return requiredOf(a).some((key) => {
    if (!requiredOf(b).includes(key)) return false
    const [one, other] = [propertyOf(a, key, root), propertyOf(b, key, root)]
    if (one === null || other === null) return false
    const [values, otherValues] = [constantsOf(one), constantsOf(other)]
    if (values === null || otherValues === null) return false
    return !values.some((value) => otherValues.includes(value))
  })
}

const resolved = (schema: PlainJson, root: PlainJson): PlainObject | null => {
  let current = schema
  for (let step = 0; step < STEPS && isPlainObject(current); step++) {
    const target = current.get('$ref')
    if (typeof target !== 'string') return current
    const path = target.split('/').slice(1)
    let found: PlainJson | undefined = root
    for (const part of path) {
      const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
      found = isPlainObject(found) ? found.get(key) : undefined
    }
    if (found === undefined) return null
    current = found
  }
  return null
}

/** Constants by their spelling; null when the schema is no list of scalar constants. */
const constantsOf = (schema: PlainObject): readonly string[] | null => {
  const values = schema.has('const') ? [schema.get('const')!] : schema.get('enum')
  if (!Array.isArray(values)) return null
  if (values.some((value: PlainJson) => typeof value === 'object' && value !== null)) return null
  return values.map((value: PlainJson) => JSON.stringify(value))
}

const typesOf = (schema: PlainObject): readonly string[] | null => {
  const constants = constantsOf(schema)
  if (constants !== null) return constants.map((text) => typeOfConstant(text))
  const type = schema.get('type')
  if (type === undefined) return null
  const names = (Array.isArray(type) ? type : [type]) as readonly PlainJson[]
  return names.map((name) => (name === 'integer' ? 'number' : String(name)))
}

const typeOfConstant = (text: string): string => {
  const value = JSON.parse(text) as unknown
  return value === null ? 'null' : typeof value
}

const requiredOf = (schema: PlainObject): readonly PlainJson[] => {
  const keys = schema.get('required')
  return Array.isArray(keys) ? (keys as readonly PlainJson[]) : []
}

const propertyOf = (schema: PlainObject, key: PlainJson, root: PlainJson): PlainObject | null => {
  const properties = schema.get('properties')
  const property = isPlainObject(properties) && typeof key === 'string' ? properties.get(key) : undefined
  return property === undefined ? null : resolved(property, root)
}
