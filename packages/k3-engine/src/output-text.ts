import type { TokenStream } from './interfaces.js'
import type { Model } from './model.js'
import { StopMatcher } from './stop-matcher.js'

/** The generated ids, their text, and why it ended. */
export class OutputText {
  readonly ids: number[] = []
  text = ''
  finishReason: 'stop' | null = null
  readonly #eos: readonly number[]
  readonly #decoder: TokenStream | undefined
  readonly #matcher: StopMatcher

  constructor(model: Model, stop: readonly string[]) {
    this.#eos = model.config.tokens.eos
    this.#decoder = model.tokenizer?.stream()
    this.#matcher = new StopMatcher(stop)
  }

  /** Takes the next id and returns the text that is certain with it. */
  push(id: number): string {
    this.ids.push(id)
    if (this.#eos.includes(id)) {
      this.finishReason = 'stop'
      return ''
    }
    return this.#decoder === undefined ? '' : this.#take(this.#decoder.push(id))
  }

  /** What was held back for an unfinished character or a possible stop text. */
  end(): string {
    if (this.#matcher.matched || this.#decoder === undefined) return ''
    const rest = this.#take(this.#decoder.flush())
    if (this.#matcher.matched) return rest
    const held = this.#matcher.flush()
    this.text += held
    return rest + held
  }

  #take(piece: string): string {
    const certain = this.#matcher.push(piece)
    this.text += certain
    if (this.#matcher.matched) this.finishReason = 'stop'
    return certain
  }
}
