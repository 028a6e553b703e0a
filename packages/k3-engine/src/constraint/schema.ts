import { NumberFrames } from './number-range.js'
import { at, isPlainObject, type PlainJson, type PlainObject, plainJson } from './plain-json.js'
import { disjoint } from './schema-disjoint.js'
import { schemaError } from './schema-error.js'
import { checkKeywords, countOf, numberBounds, schemaTypes, type TypeName } from './schema-keywords.js'
import {
  ArrayNode,
  LiteralNode,
  NumberNode,
  ObjectNode,
  type Property,
  StringNode,
  UnionNode,
  type ValueNode
} from './value-nodes.js'

/** A place in a schema. */
interface Place {
  readonly schema: PlainJson
  readonly pointer: string
}

/**
 * Turns a JSON schema into the values it accepts. What is not understood is refused, never ignored; where JSON Schema
 * leaves more open than a writer means, the narrower reading is taken (README), so that every output is valid.
 */
class SchemaCompiler {
  readonly #root: PlainJson
  readonly #base: string
  readonly #known = new Map<string, ValueNode>()
  readonly #made: { readonly node: ValueNode; readonly pointer: string }[] = []
  #any: ValueNode | null = null

  constructor(root: PlainJson, base: string) {
    this.#root = root
    this.#base = base
  }

  compile(): ValueNode {
    const node = this.#node({ schema: this.#root, pointer: this.#base })
    if (node === null) throw schemaError(this.#base, 'it accepts nothing')
    this.#requireEnds()
    return node
  }

  /** null for the schema `false`. */
  #node(place: Place): ValueNode | null {
    const { schema, pointer } = place
    if (schema === true) return this.#anything()
    if (schema === false) return null
    if (!isPlainObject(schema)) throw schemaError(pointer, 'expected an object, true or false')
    const known = this.#known.get(pointer)
    if (known !== undefined) return known
    const union = new UnionNode()
    this.#known.set(pointer, union)
    this.#made.push({ node: union, pointer })
    union.include(this.#options(schema, pointer))
    return union
  }

  #options(schema: PlainObject, pointer: string): readonly ValueNode[] {
    const form = checkKeywords(schema, pointer)
    if (form === 'ref') return [this.#reference(schema.get('$ref'), at(pointer, '$ref'))]
    if (form === 'any') return [this.#anything()]
    if (form === 'union') return this.#union(schema, pointer)
    if (form === 'values') return this.#values(schema, pointer)
    const nodes = schemaTypes(schema, pointer).map((type) => this.#typed(type, schema, pointer))
    for (const node of nodes) this.#made.push({ node, pointer })
    return nodes
  }

  #reference(target: PlainJson | undefined, pointer: string): ValueNode {
    if (typeof target !== 'string' || !(target === '#' || target.startsWith('#/'))) {
      throw schemaError(pointer, 'only references within the schema, "#" and "#/…", are supported')
    }
    let schema: PlainJson | undefined = this.#root
    let place = this.#base
    for (const part of target.split('/').slice(1)) {
      const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
      schema = isPlainObject(schema)
        ? schema.get(key)
        : Array.isArray(schema)
          ? schema[Number(key)]
          : undefined
      place = at(place, key)
    }
    if (schema === undefined) throw schemaError(pointer, `there is nothing at ${target}`)
    const node = this.#node({ schema, pointer: place })
    if (node === null) throw schemaError(pointer, `${target} accepts nothing`)
    return node
  }

  #union(schema: PlainObject, pointer: string): readonly ValueNode[] {
    const keyword = ['anyOf', 'oneOf', 'allOf'].find((name) => schema.has(name))!
    const branches = schema.get(keyword)
    const place = at(pointer, keyword)
    if (!Array.isArray(branches) || branches.length === 0) {
      throw schemaError(place, 'expected a list with at least one schema')
    }
    if (keyword === 'allOf' && branches.length > 1) {
      throw schemaError(place, 'allOf of more than one schema is not supported; merge them')
    }
    if (keyword === 'oneOf' && !disjoint(branches, this.#root)) {
      throw schemaError(
        place,
        'oneOf is supported when its branches differ in type or in a required constant; use anyOf'
      )
    }
    const options = branches.flatMap((branch: PlainJson, i) => {
      const node = this.#node({ schema: branch, pointer: at(place, i) })
      return node === null ? [] : [node]
    })
    if (options.length === 0) throw schemaError(place, 'none of the branches accepts anything')
    return options
  }

  #values(schema: PlainObject, pointer: string): readonly ValueNode[] {
    const keyword = schema.has('const') ? 'const' : 'enum'
    const place = at(pointer, keyword)
    const given = schema.get(keyword)!
    const values: PlainJson = keyword === 'const' ? [given] : given
    if (!Array.isArray(values) || values.length === 0) throw schemaError(place, 'expected a list of values')
    const types = schema.has('type') ? schemaTypes(schema, pointer) : null
    const kept = values.filter(
      (value: PlainJson) => types === null || types.some((type) => isOf(value, type))
    )
    if (kept.length === 0) throw schemaError(place, 'none of the values is of the type')
    return kept.map((value: PlainJson) => this.#constant(value, place))
  }

  #constant(value: PlainJson, pointer: string): ValueNode {
    const node = this.#constantNode(value, pointer)
    this.#made.push({ node, pointer })
    return node
  }

  #constantNode(value: PlainJson, pointer: string): ValueNode {
    if (isPlainObject(value)) {
      const properties = [...value].map(([name, item]) => ({
        name,
        value: this.#constant(item, pointer),
        required: true
      }))
      return new ObjectNode(properties, null)
    }
    if (typeof value !== 'object' || value === null) return new LiteralNode(value)
    const prefix = (value as readonly PlainJson[]).map((item) => this.#constant(item, pointer))
    return new ArrayNode({ prefix, items: null, min: prefix.length, max: prefix.length })
  }

  #typed(type: TypeName, schema: PlainObject, pointer: string): ValueNode {
    if (type === 'null') return new LiteralNode(null)
    if (type === 'boolean') return new UnionNode(this.#both())
    if (type === 'string') {
      return new StringNode(this.#limits(schema, pointer, 'minLength', 'maxLength'))
    }
    if (type === 'array') return this.#array(schema, pointer)
    if (type === 'object') return this.#object(schema, pointer)
    const frames = new NumberFrames(numberBounds(schema, pointer, type === 'integer'))
    if (!frames.possible) throw schemaError(pointer, `no ${type} is in its range`)
    return new NumberNode(frames)
  }

  #both(): readonly ValueNode[] {
    return [true, false].map((value) => this.#constant(value, this.#base))
  }

  #limits(schema: PlainObject, pointer: string, least: string, most: string): { min: number; max: number } {
    const min = countOf(schema, least, pointer, 0)
    const max = countOf(schema, most, pointer, Number.POSITIVE_INFINITY)
    if (min > max) throw schemaError(at(pointer, least), `${least} ${min} is more than ${most} ${max}`)
    return { min, max }
  }

  #array(schema: PlainObject, pointer: string): ValueNode {
    const { min, max } = this.#limits(schema, pointer, 'minItems', 'maxItems')
    const given = schema.get('prefixItems')
    const place = at(pointer, 'prefixItems')
    if (given !== undefined && !Array.isArray(given)) throw schemaError(place, 'expected a list of schemas')
    const prefix: ValueNode[] = []
    let most = max
    for (const [i, item] of ((given === undefined ? [] : given) as readonly PlainJson[]).entries()) {
      const node = this.#node({ schema: item, pointer: at(place, i) })
      if (node === null) most = Math.min(most, i)
      if (node === null) break
      prefix.push(node)
    }
    const rest = schema.get('items')
    const items =
      rest === undefined ? this.#anything() : this.#node({ schema: rest, pointer: at(pointer, 'items') })
    if (items === null) most = Math.min(most, prefix.length)
    if (min > most) throw schemaError(at(pointer, 'minItems'), `at most ${most} items are possible`)
    return new ArrayNode({ prefix, items, min, max: most })
  }

  #object(schema: PlainObject, pointer: string): ValueNode {
    const declared = schema.get('properties')
    if (declared !== undefined && !isPlainObject(declared)) {
      throw schemaError(at(pointer, 'properties'), 'expected an object')
    }
    const required = new Set(requiredKeys(schema, pointer))
    const extra = schema.get('additionalProperties')
    const extraPlace = {
      schema: extra === undefined ? true : extra,
      pointer: at(pointer, 'additionalProperties')
    }
    const others = this.#node(extraPlace)
    const properties: Property[] = [...(declared === undefined ? [] : declared)].map(([name, value]) => ({
      name,
      value: this.#node({ schema: value, pointer: at(at(pointer, 'properties'), name) }),
      required: required.delete(name)
    }))
    for (const name of required) properties.push({ name, value: others, required: true })
    const impossible = properties.find(({ value, required }) => required && value === null)
    if (impossible !== undefined) {
      throw schemaError(at(pointer, 'required'), `the key ${JSON.stringify(impossible.name)} may not occur`)
    }
    // a writer who lists keys and says nothing of others means these
    return new ObjectNode(properties, extra === undefined && declared !== undefined ? null : others)
  }

  /** Any JSON value. */
  #anything(): ValueNode {
    if (this.#any !== null) return this.#any
    const any = new UnionNode()
    this.#any = any
    const text = new StringNode({ min: 0, max: Number.POSITIVE_INFINITY })
    const bounds = { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY, integer: false }
    const list = new ArrayNode({ prefix: [], items: any, min: 0, max: Number.POSITIVE_INFINITY })
    const number = new NumberNode(new NumberFrames(bounds))
    const leaves = [text, number, list, new ObjectNode([], any), new LiteralNode(null)]
    for (const node of [any, ...leaves]) this.#made.push({ node, pointer: this.#base })
    any.include([...leaves, ...this.#both()])
    return any
  }

  /** Refuses schemas whose values would have to contain themselves for ever. */
  #requireEnds(): void {
    const known = new Set<ValueNode>()
    for (let before = -1; before !== known.size; ) {
      before = known.size
      for (const { node } of this.#made) if (node.canEnd(known)) known.add(node)
    }
    const endless = this.#made.find(({ node }) => !known.has(node))
    if (endless !== undefined)
      throw schemaError(endless.pointer, 'its values would have to contain themselves')
  }
}

const isOf = (value: PlainJson, type: TypeName): boolean => {
  if (value === null) return type === 'null'
  if (isPlainObject(value)) return type === 'object'
  if (typeof value === 'object') return type === 'array'
  if (typeof value === 'number') return type === 'number' || (type === 'integer' && Number.isInteger(value))
  return typeof value === type
}

const requiredKeys = (schema: PlainObject, pointer: string): readonly string[] => {
  const keys = schema.get('required')
  if (keys === undefined) return []
  if (Array.isArray(keys) && keys.every((key) => typeof key === 'string')) return keys as string[]
  throw schemaError(at(pointer, 'required'), 'expected a list of keys')
}

/**
 * The JSON values that a schema accepts. `base` is the pointer under which errors report its root.
 * @throws ERR_K3_SCHEMA with the JSON pointer of what is not supported, contradictory or endless
 */
export const compileSchema = (schema: unknown, base = '#'): ValueNode =>
  new SchemaCompiler(plainJson(schema, base), base).compile()
