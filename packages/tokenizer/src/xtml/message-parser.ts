import { CallArguments } from './call-arguments.js'
import type { OpenChannel, OutputEvent } from './output.js'
import { CLOSE, OPEN, SEP, unescapeAttribute } from './segments.js'

/** The four markers, by what they do. */
export type Marker = 'open' | 'close' | 'sep' | 'end'

type State = 'think' | 'idle' | 'response' | 'epilogue' | 'tools' | 'call' | 'argument' | 'json'

/** Headers that change the state; `argument` and `json` end with a closing header of their own name only. */
const TRANSITIONS: Readonly<Record<State, Readonly<Record<string, State>>>> = {
  think: { 'close think': 'idle', 'open think': 'think', 'open response': 'response', 'open tools': 'tools' },
  idle: {
    'open think': 'think',
    'open response': 'response',
    'open tools': 'tools',
    'close response': 'epilogue'
  },
  response: { 'close response': 'epilogue', 'open response': 'response', 'open tools': 'tools' },
  epilogue: { 'open think': 'think', 'open response': 'response', 'open tools': 'tools' },
  tools: { 'open call': 'call', 'close tools': 'epilogue' },
  call: {
    'open argument': 'argument',
    'open json': 'json',
    'close call': 'tools',
    'close tools': 'epilogue'
  },
  argument: { 'close argument': 'call' },
  json: { 'close json': 'call' }
}

interface Header {
  readonly kind: 'open' | 'close'
  text: string
}

interface OpenCall {
  /** null for a call without a name, which is read and reported nowhere. */
  readonly index: number | null
  readonly name: string
  readonly arguments: CallArguments
}

const attributesOf = (header: string): Map<string, string> =>
  new Map(
    Array.from(header.matchAll(/(\w+)="([^"]*)"/g), ([, name = '', value = '']) => [
      name,
      unescapeAttribute(value)
    ])
  )

/** The channels of one generated message: text and markers in, events out. Source: XTML.md §9. */
export class MessageParser {
  /** Events since the owner last took them. */
  events: OutputEvent[] = []
  done = false
  private state: State
  private header: Header | null = null
  private call: OpenCall | null = null
  private calls = 0

  constructor(start: OpenChannel) {
    this.state = start ?? 'idle'
  }

  /** The name of the call that is open, null when none is. */
  get openCall(): string | null {
    return this.call === null || this.call.index === null ? null : this.call.name
  }

  text(text: string): void {
    if (text === '') return
    if (this.header === null) this.literal(text)
    else this.header.text += text
  }

  marker(marker: Marker): void {
    const { header } = this
    this.header = null
    if (marker === 'sep') {
      if (header === null) this.literal(SEP)
      else this.tag(header)
      return
    }
    if (header !== null) this.literal(spelled(header))
    if (marker === 'end') this.finish()
    else this.header = { kind: marker, text: '' }
  }

  /** Text goes to the open channel; between the parts of a message there is none, and it is dropped. */
  private literal(text: string): void {
    if (this.state === 'think') this.events.push({ type: 'reasoning', text })
    else if (this.state === 'idle' || this.state === 'response') this.events.push({ type: 'text', text })
    else if (this.state === 'argument' || this.state === 'json') this.grow(this.call?.arguments.value(text))
  }

  private tag(header: Header): void {
    const name = /\S+/.exec(header.text)?.[0] ?? ''
    const key = `${header.kind} ${name}`
    const next = TRANSITIONS[this.state][key]
    if (next !== undefined) this.enter(next, header.text)
    else if (key === 'close message' && this.state !== 'argument' && this.state !== 'json') this.finish()
    else this.literal(spelled(header) + SEP)
  }

  private enter(next: State, header: string): void {
    const from = this.state
    this.state = next
    if (from === 'tools' && next === 'call') this.beginCall(attributesOf(header))
    else if (next === 'argument') this.openArgument(attributesOf(header))
    else if (next === 'json') this.grow(this.call?.arguments.openJson())
    else if (next === 'call') this.grow(this.call?.arguments.closeElement())
    else if (from === 'call' && next === 'tools') this.endCall()
    else if (from === 'call') this.dropCall()
  }

  private beginCall(attributes: ReadonlyMap<string, string>): void {
    const name = attributes.get('tool') ?? ''
    const index = name === '' ? null : this.calls++
    this.call = { index, name, arguments: new CallArguments() }
    if (index !== null) this.events.push({ type: 'tool-call-start', index, name })
  }

  private openArgument(attributes: ReadonlyMap<string, string>): void {
    const key = attributes.get('key') ?? ''
    const type = attributes.get('type') ?? 'string'
    this.grow(this.call?.arguments.openArgument(key, type))
  }

  private grow(piece: string | undefined): void {
    const index = this.call?.index ?? null
    if (index === null || piece === undefined || piece === '') return
    this.events.push({ type: 'tool-call-arguments', index, text: piece })
  }

  private endCall(): void {
    const { call } = this
    if (call === null) return
    this.grow(call.arguments.close())
    this.call = null
    if (call.index === null) return
    const text = call.arguments.toString()
    this.events.push({ type: 'tool-call-end', index: call.index, name: call.name, arguments: text })
  }

  private dropCall(): void {
    const index = this.call?.index ?? null
    this.call = null
    if (index !== null) this.events.push({ type: 'tool-call-dropped', index })
  }

  private finish(): void {
    this.dropCall()
    this.done = true
    this.events.push({ type: 'done' })
  }
}

const spelled = (header: Header): string => (header.kind === 'open' ? OPEN : CLOSE) + header.text
