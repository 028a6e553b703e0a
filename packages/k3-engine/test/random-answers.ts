import { Ajv2020 } from 'ajv/dist/2020.js'
import { chat } from '../src/chat.js'
import type { Model } from '../src/model.js'
import { createSampler } from '../src/sampler.js'
import { recommendedSampling } from '../src/sampling.js'
import { rootSchema, seeded } from './random-schema.js'

type Schema = Readonly<Record<string, unknown>>

const ajv = new Ajv2020({ strict: false, ownProperties: true })
// far beyond what the longest of the bounded values take
const MOST_TOKENS = 20_000

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const speaksOf = ({ type }: Schema, name: string): boolean =>
  (Array.isArray(type) ? type : [type]).includes(name)
const all = (schemas: unknown): unknown[] => (schemas as unknown[]).map(bounded)

/**
 * The schema with a limit wherever a value could go on for ever: on lengths, on items, in place of `true` and of a
 * reference to itself, and for keys that are not listed, of which a schema cannot limit the number.
 */
const bounded = (schema: unknown): unknown => {
  if (!isObject(schema) || Object.keys(schema).length === 0) {
    return schema === false ? false : { type: ['boolean', 'null', 'integer'] }
  }
  if ('const' in schema || 'enum' in schema) return comparable(schema)
  if ('$ref' in schema) return { $ref: '#/$defs/leaf' }
  const { minLength = 0, minItems = 0, anyOf, oneOf } = schema
  if (anyOf !== undefined) return { ...schema, anyOf: all(anyOf) }
  if (oneOf !== undefined) return { ...schema, oneOf: all(oneOf) }
  if (speaksOf(schema, 'string')) return { maxLength: Number(minLength) + 6, ...schema }
  if (speaksOf(schema, 'array')) {
    const { prefixItems, items } = schema
    const prefix = prefixItems === undefined ? {} : { prefixItems: all(prefixItems) }
    return { maxItems: Number(minItems) + 3, ...schema, ...prefix, items: bounded(items) }
  }
  return speaksOf(schema, 'object') ? boundedObject(schema) : schema
}

/** ajv compares constants with a function that calls a member `toString`; another inherited name is as hard a key. */
const comparable = (schema: Schema): unknown =>
  JSON.parse(JSON.stringify(schema).replaceAll('"toString":', '"hasOwnProperty":'))

const boundedObject = ({ additionalProperties, ...schema }: Schema): Schema => {
  const { properties, required = [] } = schema as { properties: Schema; required?: string[] }
  const known = Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, bounded(value)]))
  for (const key of required) if (!Object.hasOwn(known, key)) known[key] = bounded(true)
  return { ...schema, properties: known, ...(additionalProperties === false ? { additionalProperties } : {}) }
}

/** A schema of the supported subset all of whose values are bounded. */
const boundedSchema = (seed: number): Schema => {
  const { $defs, ...schema } = rootSchema(seeded(seed)) as Schema
  return { ...(bounded(schema) as Schema), $defs: { leaf: { type: 'string', maxLength: 5 } } }
}

/** The most probable tokens; what the vendor recommends; and nearly uniform over what the masks allow. */
const samplers = [
  () => undefined,
  (seed: number) => createSampler({ ...recommendedSampling, seed }),
  (seed: number) => createSampler({ temperature: 1000, topP: 1, seed })
]

/**
 * Has the model answer with JSON of the seed's schema, through a chat as anybody would.
 * @returns how many tokens that took
 * @throws for an answer that does not end by itself, is not JSON, or is not valid for ajv
 */
export const answerRandomSchema = async (model: Model, seed: number): Promise<number> => {
  const schema = boundedSchema(seed)
  const { finishReason, text, ids } = await chat(model, {
    messages: [{ role: 'user', content: 'x' }],
    thinking: false,
    responseFormat: { type: 'json_schema', schema },
    maxTokens: MOST_TOKENS,
    sampler: samplers[seed % samplers.length]!(seed)
  })
  const fault = (what: string) => new Error(`${seed}: ${what}: ${text} for ${JSON.stringify(schema)}`)
  if (finishReason !== 'stop') throw fault(finishReason)
  if (!ajv.validate(schema, JSON.parse(text))) throw fault(ajv.errorsText())
  return ids.length
}
