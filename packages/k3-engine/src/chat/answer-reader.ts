import type { Tokenizer } from '@k3/tokenizer'
import { createOutputParser, type OutputEvent } from '@k3/tokenizer/xtml'
import { StopMatcher } from '../stop-matcher.js'
import type { ChatPart, ChatToolCall } from './chat-parts.js'

/** Settings of an `AnswerReader`. */
export interface AnswerSettings {
  readonly tokenizer: Tokenizer
  readonly start: 'think' | 'response'
  readonly stop: readonly string[]
  /** Ids that end a generation; they are no text. */
  readonly eos: readonly number[]
  /** Calls in the conversation so far, from which ids of new ones are counted. */
  readonly earlierCalls: number
}

/** Turns generated ids into parts and keeps what they add up to. */
export class AnswerReader {
  readonly ids: number[] = []
  reasoning = ''
  text = ''
  readonly toolCalls: ChatToolCall[] = []
  reasoningTokens = 0
  /** Nothing that comes now can add to the answer. */
  ended = false
  /** An end token came, or a stop text. */
  stopped = false
  /** An end token came: the generation ends by itself. */
  endTokenCame = false
  /** The message was closed by the model; one more id, its end token, may follow. */
  #closed = false
  #sinceEvent = 0
  readonly #settings: AnswerSettings
  readonly #parser: ReturnType<typeof createOutputParser>
  readonly #matcher: StopMatcher

  constructor(settings: AnswerSettings) {
    this.#settings = settings
    this.#parser = createOutputParser(settings)
    this.#matcher = new StopMatcher(settings.stop)
  }

  /** Takes the next id; gives what is certain with it. */
  push(id: number): readonly ChatPart[] {
    this.ids.push(id)
    this.#sinceEvent++
    if (this.#closed) this.ended = true
    if (this.#settings.eos.includes(id)) {
      this.ended = true
      this.stopped = true
      this.endTokenCame = true
      if (!this.#isMarker(id)) return []
    }
    return this.#read(this.#parser.push(id))
  }

  /** The last parts and why the answer ends, when no more ids come. */
  end(): { readonly parts: readonly ChatPart[]; readonly finishReason: 'stop' | 'length' | 'tool_calls' } {
    const output = this.#parser.end()
    const parts = this.#matcher.matched ? [] : [...this.#read(output.events), ...this.#released()]
    const reason = output.finish_reason
    return { parts, finishReason: reason === 'length' && this.stopped ? 'stop' : reason }
  }

  #isMarker(id: number): boolean {
    return this.#settings.tokenizer.specials.get('<|end_of_msg|>') === id
  }

  #read(events: readonly OutputEvent[]): readonly ChatPart[] {
    const parts: ChatPart[] = []
    for (const event of events) {
      this.#take(event, parts)
      if (this.#matcher.matched) break
    }
    if (events.length > 0) this.#sinceEvent = 0
    return parts
  }

  #take(event: OutputEvent, parts: ChatPart[]): void {
    if (event.type === 'text') {
      this.#say(this.#matcher.push(event.text), parts)
      if (this.#matcher.matched) {
        this.ended = true
        this.stopped = true
      }
      return
    }
    parts.push(...this.#released())
    if (event.type === 'reasoning') {
      this.reasoning += event.text
      this.reasoningTokens += this.#sinceEvent
      this.#sinceEvent = 0
      parts.push(event)
    } else if (event.type === 'done') this.#closed = true
    else parts.push(this.#call(event))
  }

  #call(event: Exclude<OutputEvent, { type: 'text' | 'reasoning' | 'done' }>): ChatPart {
    const { index } = event
    const id = `call_${this.#settings.earlierCalls + index}`
    if (event.type === 'tool-call-start') {
      return { type: 'tool-call', stage: 'start', index, id, name: event.name }
    }
    if (event.type === 'tool-call-arguments') {
      return { type: 'tool-call', stage: 'arguments', index, text: event.text }
    }
    if (event.type === 'tool-call-dropped') return { type: 'tool-call', stage: 'dropped', index }
    const call = { id, name: event.name, arguments: event.arguments }
    this.toolCalls.push(call)
    return { type: 'tool-call', stage: 'end', index, ...call }
  }

  /** Text that was held back as the possible beginning of a stop text, now that the answer went on otherwise. */
  #released(): readonly ChatPart[] {
    const parts: ChatPart[] = []
    this.#say(this.#matcher.flush(), parts)
    return parts
  }

  #say(text: string, parts: ChatPart[]): void {
    if (text === '') return
    this.text += text
    parts.push({ type: 'text', text })
  }
}
