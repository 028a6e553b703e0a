import { K3Error } from '../errors.js'
import type { Frame } from './automaton.js'
import { at, isPlainObject, type PlainJson, plainJson } from './plain-json.js'
import { compileSchema } from './schema.js'
import { schemaError } from './schema-error.js'
import { type JsonType, ObjectNode } from './value-nodes.js'

/** An argument of a tool: for each type it may have, its value as XTML writes it. */
export interface Parameter {
  readonly name: string
  readonly required: boolean
  readonly types: readonly { readonly type: JsonType; readonly value: Frame }[]
}

/** A tool as calls of it have to be. */
export interface DeclaredTool {
  readonly name: string
  readonly parameters: readonly Parameter[]
}

/**
 * The tools of a request, those that may be called. `only`: the name of the one that has to be.
 * @throws ERR_K3_REQUEST when a tool has no name, or there is none of that name
 * @throws ERR_K3_SCHEMA for parameters that are no object or use what is not supported
 */
export const declaredTools = (tools: readonly unknown[], only: string | null): readonly DeclaredTool[] => {
  const declared = new Map<string, () => DeclaredTool>()
  for (const [i, tool] of tools.entries()) {
    const place = `#/tools/${i}`
    const given = plainJson(tool, place)
    const inner = isPlainObject(given) ? given.get('function') : undefined
    const name = isPlainObject(inner) ? inner.get('name') : undefined
    if (!isPlainObject(inner) || typeof name !== 'string' || name === '') {
      throw refused(`tool ${i} has no function with a name`)
    }
    if (declared.has(name)) throw refused(`two tools are called '${name}'`)
    const pointer = at(at(place, 'function'), 'parameters')
    declared.set(name, () => ({ name, parameters: parametersOf(inner.get('parameters'), pointer) }))
  }
  if (only === null) return [...declared.values()].map((make) => make())
  const make = declared.get(only)
  if (make !== undefined) return [make()]
  throw new K3Error('ERR_K3_REQUEST', `there is no tool '${only}' to choose`, { field: 'toolChoice' })
}

const refused = (message: string): K3Error => new K3Error('ERR_K3_REQUEST', message, { field: 'tools' })

const parametersOf = (schema: PlainJson | undefined, pointer: string): readonly Parameter[] => {
  if (schema === undefined || schema === null) return []
  if (isPlainObject(schema) && schema.size === 0) return []
  const { leaves } = compileSchema(schema, pointer)
  const [object] = leaves
  if (leaves.length !== 1 || !(object instanceof ObjectNode)) {
    throw schemaError(pointer, 'parameters have to be one object')
  }
  return object.properties.flatMap(({ name, value, required }) =>
    value === null ? [] : [{ name, required, types: typesOf(value.leaves) }]
  )
}

const typesOf = (leaves: ObjectNode['leaves']): Parameter['types'] => {
  const types = [...new Set(leaves.map(({ type }) => type))]
  return types.map((type) => ({ type, value: rawUnion(leaves.filter((leaf) => leaf.type === type)) }))
}

const rawUnion = (leaves: ObjectNode['leaves']): Frame => {
  const frames = leaves.map(({ raw }) => raw)
  return {
    nullable: frames.some(({ nullable }) => nullable),
    text: frames.length === 1 ? frames[0]!.text : null,
    step: (byte, next) => frames.flatMap((frame) => frame.step(byte, next))
  }
}
