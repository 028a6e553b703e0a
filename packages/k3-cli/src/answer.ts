import type { Tokenizer } from '@k3/tokenizer'
import { createOutputParser, encodeSegments, type OutputEvent, renderChat } from '@k3/tokenizer/xtml'
import type { Output } from './output.js'

/** Turns generated tokens into what is printed. */
export interface Answer {
  /** @param id null for text that was held back to the end */
  push(id: number | null, text: string): void
  /** What the report shows of it. */
  end(): AnswerText
}

/** The channels of an answer; `text` is null without a tokenizer, `reasoning` for a plain continuation. */
export interface AnswerText {
  readonly text: string | null
  readonly reasoning: string | null
}

/** Ids of one user turn, and a system turn before it, with the assistant's thinking channel left open. */
export const userTurnPrompt = (tokenizer: Tokenizer, user: string, system: string | undefined): number[] => {
  const messages = [{ role: 'user', content: user }]
  if (system !== undefined) messages.unshift({ role: 'system', content: system })
  return [...encodeSegments(renderChat({ messages }), tokenizer)]
}

/** A continuation: every token's text is the answer. */
export class PlainAnswer implements Answer {
  readonly #output: Output | null
  #text = ''

  /** @param output null collects only */
  constructor(output: Output | null) {
    this.#output = output
  }

  push(_id: number | null, text: string): void {
    this.#text += text
    if (text !== '') this.#output?.answer(text)
  }

  end(): AnswerText {
    this.#output?.answer('\n')
    return { text: this.#text, reasoning: null }
  }
}

/** A continuation by a model without tokenizer: the ids are the answer. */
export class IdAnswer implements Answer {
  readonly #output: Output | null
  #separator = ''

  constructor(output: Output | null) {
    this.#output = output
  }

  push(id: number | null): void {
    if (id === null) return
    this.#output?.answer(`${this.#separator}${id}`)
    this.#separator = ' '
  }

  end(): AnswerText {
    this.#output?.answer('\n')
    return { text: null, reasoning: null }
  }
}

/** A chat turn: the response channel is the answer, the thinking channel goes beside it. */
export class ChatAnswer implements Answer {
  readonly #parser: ReturnType<typeof createOutputParser>
  readonly #output: Output | null
  readonly #showReasoning: boolean
  #inReasoning = false

  constructor(tokenizer: Tokenizer, output: Output | null, showReasoning: boolean) {
    this.#parser = createOutputParser({ start: 'think', tokenizer })
    this.#output = output
    this.#showReasoning = showReasoning
  }

  push(id: number | null): void {
    // the parser holds back what is unfinished on its own
    if (id === null) return
    this.#show(this.#parser.push(id))
  }

  end(): AnswerText {
    const { events, content, reasoning } = this.#parser.end()
    this.#show(events)
    this.#closeReasoning()
    this.#output?.answer('\n')
    return { text: content, reasoning }
  }

  #show(events: readonly OutputEvent[]): void {
    for (const event of events) {
      if (event.type === 'reasoning' && this.#showReasoning) {
        this.#output?.aside(event.text)
        this.#inReasoning = true
      }
      if (event.type === 'text') {
        this.#closeReasoning()
        this.#output?.answer(event.text)
      }
    }
  }

  #closeReasoning(): void {
    if (this.#inReasoning) this.#output?.aside('\n')
    this.#inReasoning = false
  }
}
