import type { Revision } from './arguments.js'
import { inRenderingOrder, toolsOf } from './conversation.js'
import { XtmlError } from './errors.js'
import { Fields, unexpected } from './fields.js'
import { ImageQueue } from './images.js'
import { isList, isObject, type JsonValue } from './json.js'
import { declareTools, fencedJson, MessageRenderer, syntheticSystem } from './messages.js'
import { type ChatRequest, toJsonValue } from './request.js'
import { type Segment, SegmentList } from './segments.js'

const OPTIONS = [
  'add_generation_prompt',
  'thinking',
  'thinking_effort',
  'tool_choice',
  'response_format',
  'response_schema',
  'image_prompts'
]
const EFFORTS: readonly JsonValue[] = ['low', 'high', 'max']

const EFFORT =
  '`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), ' +
  'supported values include `low`, `medium`, `high`, and `max`.\nNow the system is invoked with '
const RAW_JSON =
  'Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting.'

const optionsOf = (value: object | null | undefined): Fields => {
  const options = new Fields(toJsonValue(value ?? {}, 'options'), 'options', 'ERR_XTML_OPTION')
  for (const key of options.object.keys()) {
    if (OPTIONS.includes(key)) continue
    throw new XtmlError('ERR_XTML_OPTION', options.at(key), `unknown option; known: ${OPTIONS.join(', ')}`)
  }
  return options
}

/** Source: XTML.md §4.1. The public entry point of the official code asks for `max` when the key is absent. */
const thinkingEffort = (out: SegmentList, options: Fields): void => {
  const effort = options.has('thinking_effort') ? options.get('thinking_effort') : 'max'
  if (effort === null || effort === undefined) return
  if (!EFFORTS.includes(effort)) {
    throw unexpected(
      'ERR_XTML_THINKING_EFFORT',
      options.at('thinking_effort'),
      'low, high, max or null',
      effort
    )
  }
  syntheticSystem(out, 'thinking-effort', `${EFFORT}\`thinking_effort=${String(effort)}\`.`)
}

/** Source: XTML.md §4.2. A named function is the caller's to enforce: nothing is rendered for it. */
const toolChoice = (out: SegmentList, options: Fields): void => {
  const choice = options.get('tool_choice')
  if (choice === undefined || choice === null || choice === 'auto' || isObject(choice)) return
  if (choice !== 'required' && choice !== 'none') {
    const expected = 'auto, required, none, an object or null'
    throw unexpected('ERR_XTML_TOOL_CHOICE', options.at('tool_choice'), expected, choice)
  }
  const order = choice === 'required' ? 'call tools' : 'NOT call any tools'
  const first = `The system is invoked with \`tool_choice=${choice}\`.`
  syntheticSystem(out, 'tool-choice', `${first}\nYou MUST ${order} in the next message.`)
}

const schemaOf = (options: Fields, format: JsonValue): JsonValue => {
  const given = options.get('response_schema')
  if (given !== undefined && given !== null) return given
  const outer = isObject(format) ? format.get('json_schema') : undefined
  if (!isObject(outer)) return outer === undefined ? null : outer
  for (const key of ['schema', 'json_schema']) {
    const inner = outer.get(key)
    if (inner !== undefined) return inner
  }
  return outer
}

/** Source: XTML.md §4.3. A type that is neither of the two renders nothing. */
const responseFormat = (out: SegmentList, options: Fields): void => {
  const format = options.get('response_format')
  if (format === undefined || format === null) return
  const type = isObject(format) ? format.get('type') : format
  if (typeof type !== 'string') {
    const expected = 'a type name, an object with a type, or null'
    throw unexpected('ERR_XTML_RESPONSE_FORMAT', options.at('response_format'), expected, format)
  }
  const first = `The system is invoked with \`response_format=${type}\`.\n${RAW_JSON}`
  if (type === 'json_object') syntheticSystem(out, 'response-format', first)
  if (type !== 'json_schema') return
  const schema = fencedJson(schemaOf(options, format))
  syntheticSystem(
    out,
    'response-format',
    `${first}\nThe JSON data must match the following schema:\n${schema}`
  )
}

const messagesOf = (value: readonly unknown[]): readonly JsonValue[] => {
  const messages = toJsonValue(value, 'messages')
  if (isList(messages)) return messages
  throw unexpected('ERR_XTML_REQUEST', 'messages', 'a list of messages', messages)
}

/**
 * Renders a conversation as the ordered segments of a prompt: `[text, special]`, to be encoded one by one.
 * Only the four markers and the image blocks are special, so nothing a client wrote can become structure.
 * `revision` is that of the official encoder. Source: XTML.md §3-§8.
 * @throws XtmlError naming the field that cannot be rendered; nothing is guessed and nothing is dropped
 */
export const renderChat = (request: ChatRequest, revision: Revision = 'R2'): readonly Segment[] => {
  if (revision !== 'R1' && revision !== 'R2') {
    throw new XtmlError('ERR_XTML_REVISION', 'revision', `expected R1 or R2, found ${String(revision)}`)
  }
  const options = optionsOf(request.options)
  const thinking = options.flag('thinking', true)
  const images = new ImageQueue(options.get('image_prompts'), options.at('image_prompts'))
  const tools = toolsOf(toJsonValue(request.tools ?? null, 'tools'), 'tools')
  const out = new SegmentList()
  if (tools.length > 0) declareTools(out, tools, false)
  if (thinking) thinkingEffort(out, options)
  const messages = new MessageRenderer(out, images, thinking, revision)
  for (const message of inRenderingOrder(messagesOf(request.messages))) messages.render(message)
  toolChoice(out, options)
  responseFormat(out, options)
  if (options.flag('add_generation_prompt', true)) {
    out.open('message', [['role', 'assistant']])
    out.open(thinking ? 'think' : 'response')
  }
  images.requireEmpty()
  return out.segments
}
