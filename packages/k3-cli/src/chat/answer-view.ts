import type { ChatPart } from '@k3/engine/chat'
import type { Output } from '../output.js'
import { screenText } from './screen-text.js'

/** How an answer is shown. */
export interface ViewSettings {
  readonly showReasoning: boolean
  /** Somebody reads along, who can be told what is hidden. */
  readonly isInteractive: boolean
  /** stdout is a screen, which must not obey what the model writes. */
  readonly isScreen: boolean
}

/** Shows the parts of one answer as they come: the response on stdout, reasoning and calls beside it. */
export class AnswerView {
  readonly #output: Output
  readonly #settings: ViewSettings
  #reasoningSinceMs: number | null = null
  #isReasoningOpen = false
  #isTextOpen = false
  #call = ''

  constructor(output: Output, settings: ViewSettings) {
    this.#output = output
    this.#settings = settings
  }

  show(part: ChatPart): void {
    if (part.type === 'progress') {
      this.#output.progress(`reading ${part.done.toFixed(1)} of ${part.total} tokens`)
    }
    if (part.type === 'reasoning') this.#reason(part.text)
    if (part.type === 'text') this.#say(part.text)
    if (part.type === 'tool-call') this.#showCall(part)
    if (part.type === 'finish') this.#close()
  }

  #reason(text: string): void {
    this.#reasoningSinceMs ??= performance.now()
    if (this.#settings.showReasoning) {
      this.#output.aside(screenText(text))
      this.#isReasoningOpen = true
    } else if (this.#settings.isInteractive) this.#output.progress('thinking ...')
  }

  #say(text: string): void {
    this.#closeReasoning()
    this.#output.answer(this.#settings.isScreen ? screenText(text) : text)
    this.#isTextOpen = true
  }

  #showCall(part: Extract<ChatPart, { type: 'tool-call' }>): void {
    if (part.stage === 'start') {
      this.#close()
      this.#call = `call of ${screenText(part.name)} `
    }
    if (part.stage === 'arguments') {
      this.#call += screenText(part.text)
      this.#output.progress(this.#call)
    }
    if (part.stage === 'end') this.#output.note(this.#call)
    if (part.stage === 'dropped') this.#output.note(`${this.#call} ... cut off and dropped`)
  }

  #close(): void {
    this.#closeReasoning()
    if (this.#isTextOpen) this.#output.answer('\n')
    this.#isTextOpen = false
  }

  #closeReasoning(): void {
    if (this.#isReasoningOpen) this.#output.aside('\n')
    this.#isReasoningOpen = false
    const since = this.#reasoningSinceMs
    this.#reasoningSinceMs = null
    if (since === null || this.#settings.showReasoning || !this.#settings.isInteractive) return
    const seconds = ((performance.now() - since) / 1000).toFixed(1)
    this.#output.aside(`(thought for ${seconds} s; /think show opens it)\n`)
  }
}
