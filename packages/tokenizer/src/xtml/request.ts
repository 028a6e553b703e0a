import { XtmlError } from './errors.js'
import {
  isList,
  isObject,
  JsonNumber,
  type JsonObject,
  type JsonValue,
  MAX_DEPTH,
  parseJson
} from './json.js'
import { floatText } from './python-json.js'

/**
 * What a client asks for. Read it from JSON text with `parseRequest`, which keeps every number as written and the
 * order of every key, or build it from plain objects: there an integer number in the safe range or a bigint is an
 * integer, every other number prints as a Python float (`2.5`, `1e+16`), integer-like keys come first (a `Map`
 * keeps their order), and a property that is `undefined` is absent.
 */
export interface ChatRequest {
  /** OpenAI-style messages: objects with `role`, `content`, `name`, `reasoning_content`, `tool_calls`, … */
  readonly messages: readonly unknown[]
  /** OpenAI-style tool objects, rendered whole with sorted keys. */
  readonly tools?: readonly unknown[] | null | undefined
  /**
   * `add_generation_prompt` (default true), `thinking` (default true), `thinking_effort` (`low` `high` `max`, null
   * for none, default `max`), `tool_choice`, `response_format`, `response_schema`, `image_prompts`; nothing else.
   */
  readonly options?: object | null | undefined
}

const fail = (path: string, text: string): never => {
  throw new XtmlError('ERR_XTML_VALUE', path, text)
}

const numberOf = (value: number): JsonNumber =>
  new JsonNumber(Number.isSafeInteger(value) && !Object.is(value, -0) ? String(value) : floatText(value))

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const entriesOf = (value: object, path: string): readonly (readonly [unknown, unknown])[] => {
  if (value instanceof Map) return [...value]
  if (isPlain(value)) return Object.entries(value)
  return fail(path, 'expected a JSON value, found an instance of a class; convert it to a plain object first')
}

const objectOf = (value: object, path: string, depth: number): JsonObject => {
  const result = new Map<string, JsonValue>()
  for (const [key, item] of entriesOf(value, path)) {
    if (typeof key !== 'string') fail(path, `expected string keys, found a ${typeof key}`)
    else if (item !== undefined) result.set(key, toJsonValue(item, `${path}.${key}`, depth + 1))
  }
  return result
}

/**
 * The JSON value of a plain JavaScript value, copied; values of `parseRequest` pass through.
 * @throws ERR_XTML_VALUE for what JSON cannot hold
 * @throws ERR_XTML_JSON_DEPTH for nesting beyond the limit, cycles included
 */
export const toJsonValue = (value: unknown, path: string, depth = 0): JsonValue => {
  if (depth > MAX_DEPTH) {
    const text = `nesting goes beyond ${MAX_DEPTH} levels; flatten the value or break the cycle`
    throw new XtmlError('ERR_XTML_JSON_DEPTH', `${path.slice(0, 80)}…`, text)
  }
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (value instanceof JsonNumber) return value
  if (typeof value === 'number') return numberOf(value)
  if (typeof value === 'bigint') return new JsonNumber(String(value))
  if (Array.isArray(value))
    return Array.from(value, (item: unknown, i) => toJsonValue(item, `${path}[${i}]`, depth + 1))
  if (typeof value === 'object') return objectOf(value, path, depth)
  return fail(path, `expected a JSON value, found ${typeof value}`)
}

const REQUEST_KEYS = ['messages', 'tools', 'options']

/**
 * Reads a request `{"messages": […], "tools": […], "options": {…}}` from JSON text without losing what rendering
 * needs: number lexemes, key order, `NaN` and the infinities. Repeated keys: last value, first position.
 * @throws ERR_XTML_JSON when the text is not JSON (`path` holds the offset), ERR_XTML_JSON_DEPTH
 * @throws ERR_XTML_REQUEST when it is not an object with a `messages` list, or has a key of another name
 */
export const parseRequest = (text: string): ChatRequest => {
  const request = parseJson(text, 'request')
  if (!isObject(request)) {
    throw new XtmlError('ERR_XTML_REQUEST', 'request', 'expected an object with a "messages" list')
  }
  for (const key of request.keys()) {
    if (REQUEST_KEYS.includes(key)) continue
    const known = REQUEST_KEYS.join(', ')
    throw new XtmlError('ERR_XTML_REQUEST', 'request', `unknown key ${JSON.stringify(key)}; known: ${known}`)
  }
  const messages = request.get('messages')
  if (!isList(messages)) throw new XtmlError('ERR_XTML_REQUEST', 'messages', 'expected a list of messages')
  const tools = request.get('tools')
  if (!(tools === undefined || tools === null || isList(tools))) {
    throw new XtmlError('ERR_XTML_TOOLS', 'tools', 'expected a list of tool objects, null or nothing')
  }
  const options = request.get('options')
  if (!(options === undefined || options === null || isObject(options))) {
    throw new XtmlError('ERR_XTML_OPTION', 'options', 'expected an object, null or nothing')
  }
  return { messages, tools, options }
}
