import { XtmlError } from './errors.js'
import { Fields } from './fields.js'
import { isObject, type JsonValue } from './json.js'

/** A tool call of an assistant message: the OpenAI shape or the flat `{name, arguments}`. */
export interface Call {
  readonly id: string | null
  readonly name: string
  readonly arguments: JsonValue | undefined
  readonly path: string
}

/** Where a result belongs: the position of its call and the name of the tool. */
interface Target {
  readonly position: number
  readonly name: string
}

/** A message in rendering order; `tool` is the name of the call that a tool result was matched to. */
export interface Message {
  readonly fields: Fields
  readonly role: JsonValue | undefined
  readonly tool: string | null
}

/** The calls of an assistant message. @throws ERR_XTML_CALL */
export const callsOf = (message: Fields): readonly Call[] =>
  message.list('tool_calls').map((value, i) => {
    const call = new Fields(value, `${message.at('tool_calls')}[${i}]`, 'ERR_XTML_CALL')
    const body = call.has('function')
      ? new Fields(call.get('function'), call.at('function'), 'ERR_XTML_CALL')
      : call
    const name = body.text('name')
    if (name === null) throw new XtmlError('ERR_XTML_CALL', body.at('name'), 'expected the name of the tool')
    return { id: call.id('id'), name, arguments: body.get('arguments'), path: body.at('arguments') }
  })

const targetsOf = (assistant: Fields): Map<string, Target> => {
  const targets = new Map<string, Target>()
  callsOf(assistant).forEach(({ id, name }, position) => {
    if (id !== null && !targets.has(id)) targets.set(id, { position, name })
  })
  return targets
}

const callIdOf = (message: Fields): string | null =>
  message.id(message.has('tool_call_id') ? 'tool_call_id' : 'id')

/** A run of tool results in the order of their calls, or as it came when one of them answers no known call. */
const ordered = (run: readonly Message[], targets: ReadonlyMap<string, Target>): readonly Message[] => {
  const matched: { readonly message: Message; readonly position: number }[] = []
  for (const message of run) {
    const id = callIdOf(message.fields)
    const target = id === null ? undefined : targets.get(id)
    if (target === undefined) return run
    matched.push({ message: { ...message, tool: target.name }, position: target.position })
  }
  matched.sort((a, b) => a.position - b.position)
  return matched.map(({ message }) => message)
}

/**
 * The messages with each run of tool results brought into the order of the calls it answers.
 * Source: XTML.md §7, first pass.
 * @throws ERR_XTML_MESSAGE when a message is no object or a field of it has another type than expected
 */
export const inRenderingOrder = (messages: readonly JsonValue[]): readonly Message[] => {
  const result: Message[] = []
  let run: Message[] = []
  let targets: ReadonlyMap<string, Target> = new Map()
  messages.forEach((value, i) => {
    const fields = new Fields(value, `messages[${i}]`, 'ERR_XTML_MESSAGE')
    const message = { fields, role: fields.get('role'), tool: null }
    if (message.role === 'tool') {
      run.push(message)
      return
    }
    result.push(...ordered(run, targets), message)
    run = []
    if (message.role === 'assistant') targets = targetsOf(fields)
  })
  result.push(...ordered(run, targets))
  return result
}

/** The tools that a system message adds to the conversation, empty for an ordinary one. @throws ERR_XTML_TOOLS */
export const toolsOf = (value: JsonValue | undefined, path: string): readonly JsonValue[] => {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value))
    throw new XtmlError('ERR_XTML_TOOLS', path, 'expected a list of tool objects or null')
  value.forEach((tool: JsonValue, i) => {
    if (!isObject(tool)) throw new XtmlError('ERR_XTML_TOOLS', `${path}[${i}]`, 'expected a tool object')
  })
  return value
}
