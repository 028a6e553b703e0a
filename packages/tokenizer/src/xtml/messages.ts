import { type CallBody, callBody, isBlank, type Revision } from './arguments.js'
import { type Call, callsOf, type Message, toolsOf } from './conversation.js'
import { XtmlError } from './errors.js'
import { Fields, unexpected } from './fields.js'
import type { ImageQueue } from './images.js'
import { isList, type JsonValue } from './json.js'
import { COMPACT, dumps, keySorted } from './python-json.js'
import type { Attribute, SegmentList } from './segments.js'

const DECLARED = '# Tools\nHere are the available tools, described in JSONSchema.\n\n'
const ADDED =
  '## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n' +
  'You have access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n'

/** A fenced block with the compact JSON of a key-sorted value. */
export const fencedJson = (value: JsonValue): string =>
  `\`\`\`json\n${dumps(keySorted(value), COMPACT)}\n\`\`\``

/** A system message that no client wrote. */
export const syntheticSystem = (out: SegmentList, type: string, body: string): void => {
  out.open('message', [
    ['role', 'system'],
    ['type', type]
  ])
  out.text(body)
  out.endMessage()
}

/** A tool declaration: the one of the request, or the one that a system message adds. Source: XTML.md §5. */
export const declareTools = (out: SegmentList, tools: readonly JsonValue[], added: boolean): void => {
  syntheticSystem(out, 'tool-declare', (added ? ADDED : DECLARED) + fencedJson(tools))
}

/** Renders messages one by one, in rendering order. Source: XTML.md §6 and the second pass of §7. */
export class MessageRenderer {
  private readonly out: SegmentList
  private readonly images: ImageQueue
  private readonly thinking: boolean
  private readonly revision: Revision
  private calls: readonly Call[] = []
  private results = 0

  constructor(out: SegmentList, images: ImageQueue, thinking: boolean, revision: Revision) {
    this.out = out
    this.images = images
    this.thinking = thinking
    this.revision = revision
  }

  /**
   * @throws ERR_XTML_ROLE for a role of another name (R1 skips such a message as the official code does),
   * ERR_XTML_MESSAGE, ERR_XTML_CONTENT, ERR_XTML_CALL, ERR_XTML_ARGUMENTS, ERR_XTML_TOOLS, ERR_XTML_TOOL_NAME,
   * ERR_XTML_IMAGE_COUNT
   */
  render(message: Message): void {
    const { fields, role } = message
    if (role === 'assistant') this.assistant(fields)
    else if (role === 'tool') this.result(message)
    else if (role === 'user') this.plain(fields, role)
    else if (role === 'system') this.system(fields)
    else if (this.revision === 'R2' || typeof role !== 'string') {
      const known = 'one of user, system, assistant, tool (map developer to system)'
      throw unexpected('ERR_XTML_ROLE', fields.at('role'), known, role)
    }
  }

  private system(fields: Fields): void {
    const tools = toolsOf(fields.get('tools'), fields.at('tools'))
    if (tools.length > 0) declareTools(this.out, tools, true)
    else this.plain(fields, 'system')
  }

  private plain(fields: Fields, role: string): void {
    this.out.open('message', attributesOf(fields, role))
    this.content(fields)
    this.out.endMessage()
  }

  private assistant(fields: Fields): void {
    this.calls = callsOf(fields)
    this.results = 0
    this.out.open('message', attributesOf(fields, 'assistant'))
    if (this.thinking) this.reasoning(fields)
    this.out.open('response')
    this.content(fields)
    this.out.close('response')
    if (this.calls.length > 0) {
      this.out.open('tools')
      this.calls.forEach((call, i) => {
        this.call(call, i + 1)
      })
      this.out.close('tools')
    }
    this.out.endMessage()
  }

  private reasoning(fields: Fields): void {
    const text = fields.text('reasoning_content') || fields.text('reasoning') || ''
    this.out.open('think')
    if (this.revision === 'R2' || !isBlank(text)) this.images.text(this.out, text)
    this.out.close('think')
  }

  private call(call: Call, index: number): void {
    this.out.open('call', [
      ['tool', call.name],
      ['index', String(index)]
    ])
    this.body(callBody(call.arguments, call.path, this.revision))
    this.out.close('call')
  }

  private body(body: CallBody): void {
    if (typeof body === 'string') {
      this.element('json', [['type', 'object']], body)
      return
    }
    for (const { key, type, text } of body) {
      const attributes: Attribute[] = [
        ['key', key],
        ['type', type]
      ]
      this.element('argument', attributes, text)
    }
  }

  private element(tag: string, attributes: readonly Attribute[], text: string): void {
    this.out.open(tag, attributes)
    this.images.text(this.out, text)
    this.out.close(tag)
  }

  private result(message: Message): void {
    const { fields } = message
    this.results++
    const stated = message.tool ?? fields.text(fields.has('tool') ? 'tool' : 'name')
    const name = stated ?? this.calls[this.results - 1]?.name
    if (name === undefined) {
      const text = `no tool call for result ${this.results}; set tool_call_id, or name the tool in "name"`
      throw new XtmlError('ERR_XTML_TOOL_NAME', fields.path, text)
    }
    this.out.open('message', [
      ['role', 'tool'],
      ['tool', name],
      ['index', String(this.results)]
    ])
    this.content(fields)
    this.out.endMessage()
  }

  private content(fields: Fields): void {
    const content = fields.get('content')
    if (content === undefined || content === null) return
    if (typeof content === 'string') this.images.text(this.out, content)
    else if (isList(content)) {
      content.forEach((part, i) => {
        this.part(new Fields(part, `${fields.at('content')}[${i}]`, 'ERR_XTML_CONTENT'))
      })
    } else
      throw unexpected(
        'ERR_XTML_CONTENT',
        fields.at('content'),
        'a string, a list of parts, or null',
        content
      )
  }

  private part(part: Fields): void {
    const type = part.get('type')
    if (type === 'image' || type === 'image_url') {
      this.images.image(this.out)
      return
    }
    const text = part.text('text')
    if (text === null)
      throw unexpected('ERR_XTML_CONTENT', part.at('text'), 'a string, or an image part', undefined)
    this.images.text(this.out, text)
  }
}

const attributesOf = (fields: Fields, role: string): readonly Attribute[] => {
  const name = fields.text('name')
  return name === null || name === ''
    ? [['role', role]]
    : [
        ['role', role],
        ['name', name]
      ]
}
