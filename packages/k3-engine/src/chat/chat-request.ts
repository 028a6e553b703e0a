import { K3Error } from '../errors.js'
import type { Sampler } from '../interfaces.js'
import type { PrefixCache } from '../prefix-cache.js'
import type { Session } from '../session.js'
import { refuseUnknownFields } from '../unknown-fields.js'

/** What the answer has to be: free text, any JSON object, or JSON that a schema accepts. */
export type ResponseFormat =
  | { readonly type: 'text' }
  | { readonly type: 'json_object' }
  | { readonly type: 'json_schema'; readonly schema: unknown }

/** Whether tools are called: as the model likes, never, at least once, or once and this one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string }

/** A conversation to continue with one assistant message. */
export interface ChatRequest {
  /**
   * OpenAI-style messages, `system` `user` `assistant` `tool`. Give back `reasoning_content` of earlier turns: the model
   * was trained to see it. Fields: README of `@k3/tokenizer`, XTML.
   */
  readonly messages: readonly unknown[]
  /** OpenAI-style tool objects, `{type: 'function', function: {name, description, parameters}}`. */
  readonly tools?: readonly unknown[] | undefined
  /** Default `auto`. `required` and a name hold the output to the declared tools and to their parameters. */
  readonly toolChoice?: ToolChoice | undefined
  /** Whether the model thinks before it answers. Default true, false with effort `none`. */
  readonly thinking?: boolean | undefined
  /** How much it thinks; null says nothing about it. Default `max` when it thinks. */
  readonly effort?: 'none' | 'low' | 'high' | 'max' | null | undefined
  /** Default text. JSON is enforced token by token, after thinking has closed. */
  readonly responseFormat?: ResponseFormat | undefined
  /** The most tokens to generate, reasoning and markers included; at least 1. */
  readonly maxTokens: number
  /** Default: greedy. */
  readonly sampler?: Sampler | undefined
  /** Texts that end the answer and are not part of it; they are looked for in the answer only, not in reasoning. */
  readonly stop?: readonly string[] | undefined
  /** Log-probabilities of each token and of this many best ones of its step. Default: none at all. */
  readonly logprobs?: number | undefined
  /** Ends the work within one layer. The last part says what was there; then `signal.reason` is thrown. */
  readonly signal?: AbortSignal | undefined
  /** true: an abort is an ordinary end with finishReason `abort`, and nothing is thrown. Default false. */
  readonly stopOnAbort?: boolean | undefined
  /** Continues this sequence, which has to be a beginning of the conversation. Default: a sequence of its own. */
  readonly session?: Session | undefined
  /** Where to look for the beginning of the conversation, and to keep it; not together with `session`. */
  readonly prefixCache?: PrefixCache | undefined
  /** Drafts tokens from repetitions, as in `model.generate`; changes how long it takes and never what comes out. */
  readonly speculate?: number | 'auto' | undefined
}

const FIELDS = [
  'messages',
  'tools',
  'toolChoice',
  'thinking',
  'effort',
  'responseFormat',
  'maxTokens',
  'sampler',
  'stop',
  'logprobs',
  'signal',
  'stopOnAbort',
  'session',
  'prefixCache',
  'speculate'
]
const EFFORTS: readonly unknown[] = [undefined, null, 'none', 'low', 'high', 'max']

/** @throws ERR_K3_REQUEST naming the field that is unknown, of another type, or at odds with another one */
export const checkChatRequest = (request: ChatRequest): void => {
  refuseUnknownFields(request, FIELDS, 'ERR_K3_REQUEST', 'a chat request')
  const { messages, tools, stop = [], session, prefixCache } = request
  if (!Array.isArray(messages)) throw refusedField('messages', 'messages must be a list')
  if (tools !== undefined && !Array.isArray(tools)) throw refusedField('tools', 'tools must be a list')
  if (!Array.isArray(stop) || stop.some((text) => typeof text !== 'string' || text === '')) {
    throw refusedField('stop', 'stop must be a list of texts, none of them empty')
  }
  if (session !== undefined && prefixCache !== undefined) {
    throw refusedField('prefixCache', 'give either a session or a prefixCache')
  }
  checkFlag('thinking', request.thinking)
  checkFlag('stopOnAbort', request.stopOnAbort)
  checkEffort(request)
  checkFormat(request.responseFormat)
  checkToolChoice(request)
}

/** Whether the prompt leaves the thinking channel open. */
export const thinks = ({ thinking, effort }: ChatRequest): boolean =>
  thinking === undefined ? effort !== 'none' : thinking

/** Whether a call has to be made. */
export const forcesCall = ({ toolChoice }: ChatRequest): boolean =>
  toolChoice === 'required' || typeof toolChoice === 'object'

/** The refusal of one field of a chat request. */
export const refusedField = (field: string, message: string): K3Error =>
  new K3Error('ERR_K3_REQUEST', message, { field })

const checkFlag = (field: string, value: unknown): void => {
  if (value === undefined || typeof value === 'boolean') return
  throw refusedField(field, `${field} must be true or false, got ${String(value)}`)
}

const checkEffort = ({ thinking, effort }: ChatRequest): void => {
  if (!EFFORTS.includes(effort)) {
    throw refusedField('effort', `effort must be none, low, high, max or null, got ${String(effort)}`)
  }
  if (thinking === true && effort === 'none') {
    throw refusedField('effort', `effort 'none' means no thinking, but thinking is true`)
  }
  if (thinking === false && typeof effort === 'string' && effort !== 'none') {
    throw refusedField('effort', `effort '${effort}' has no effect with thinking false`)
  }
}

const checkFormat = (format: ResponseFormat | undefined): void => {
  if (format === undefined) return
  if (typeof format !== 'object' || format === null) {
    throw refusedField('responseFormat', 'responseFormat must be an object with a type')
  }
  const { type } = format
  if (type !== 'text' && type !== 'json_object' && type !== 'json_schema') {
    const found = String(type)
    throw refusedField('responseFormat', `its type must be text, json_object or json_schema, got ${found}`)
  }
  const fields = type === 'json_schema' ? ['type', 'schema'] : ['type']
  refuseUnknownFields(format, fields, 'ERR_K3_REQUEST', `a responseFormat of type ${type}`)
  if (type === 'json_schema' && format.schema === undefined) {
    throw refusedField('responseFormat', 'responseFormat of type json_schema needs a schema')
  }
}

const checkToolChoice = (request: ChatRequest): void => {
  const { toolChoice, tools = [], responseFormat } = request
  if (toolChoice === undefined || toolChoice === 'auto' || toolChoice === 'none') return
  if (typeof toolChoice === 'object' && toolChoice !== null) {
    refuseUnknownFields(toolChoice, ['name'], 'ERR_K3_REQUEST', 'a toolChoice')
  } else if (toolChoice !== 'required') {
    const found = String(toolChoice)
    throw refusedField('toolChoice', `toolChoice must be auto, none, required or {name}, got ${found}`)
  }
  if (tools.length === 0) throw refusedField('toolChoice', 'toolChoice forces a call, but there are no tools')
  if (responseFormat !== undefined && responseFormat.type !== 'text') {
    throw refusedField('responseFormat', 'the answer is a forced call, so it cannot have a format; drop one')
  }
}
