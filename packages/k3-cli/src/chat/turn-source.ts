import type { Stoppable } from '../interrupt.js'

/** What came where a text was asked for; an interrupt is Ctrl-C on an empty line. */
export type Entry =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'interrupt' }
  | { readonly kind: 'end' }

/** Where the words of the person come from. */
export interface TurnSource {
  /** Somebody sits in front of it and can be asked again. */
  readonly isInteractive: boolean
  /** The next text, whole; `prompt` is shown to whom can see it. */
  next(prompt: string): Promise<Entry>
  /** Begins an answer that Ctrl-C stops. */
  stoppable(): Stoppable
  close(): Promise<void>
}

/** Puts lines together: one that ends with a backslash goes on in the next one. */
export class TurnText {
  #lines: string[] = []

  /** Takes a line; returns the whole text when it ends here. */
  push(line: string): string | null {
    if (line.endsWith('\\')) {
      this.#lines.push(line.slice(0, -1))
      return null
    }
    const text = [...this.#lines, line].join('\n')
    this.#lines = []
    return text
  }

  /** Takes a line that does not end the text, whatever it ends with: one of a pasted block. */
  keep(line: string): void {
    this.#lines.push(line)
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0
  }

  clear(): void {
    this.#lines = []
  }
}
