import { createInterface, type Interface, type Key } from 'node:readline'
import { EXIT } from '../exit-codes.js'
import type { Stoppable } from '../interrupt.js'
import type { Terminal } from '../terminal.js'
import { EditorScreen } from './editor-screen.js'
import { type Entry, type TurnSource, TurnText } from './turn-source.js'

const CONTINUATION = '... '
const PASTE_MARKS_ON = '\u001b[?2004h'
const PASTE_MARKS_OFF = '\u001b[?2004l'

/**
 * A terminal with a person in front of it: line editing and history by node:readline, texts of several lines, pasted
 * blocks as one text, and Ctrl-C with a meaning that depends on what is going on.
 */
export class LineEditor implements TurnSource {
  readonly isInteractive = true
  readonly #terminal: Terminal
  readonly #screen: EditorScreen
  readonly #editor: Interface
  readonly #text = new TurnText()
  /** entered before they were asked for */
  readonly #early: Entry[] = []
  #waiting: ((entry: Entry) => void) | null = null
  #prompt = ''
  #answer: AbortController | null = null
  #isPasting = false
  #isClosed = false
  readonly #interrupt = () => this.#interrupted()
  readonly #restore = () => this.#markPastes(PASTE_MARKS_OFF)

  constructor(terminal: Terminal) {
    this.#terminal = terminal
    this.#screen = new EditorScreen(terminal.stderr)
    this.#editor = createInterface({
      input: terminal.stdin,
      output: this.#screen,
      terminal: true,
      historySize: 1000,
      crlfDelay: Number.POSITIVE_INFINITY
    })
    this.#editor.on('line', (line) => this.#entered(line))
    this.#editor.on('SIGINT', this.#interrupt)
    this.#editor.on('close', () => this.#ended())
    terminal.stdin.on('keypress', (_text: string | undefined, { name }: Key) => this.#pasted(name))
    process.on('SIGINT', this.#interrupt)
    process.on('exit', this.#restore)
    this.#markPastes(PASTE_MARKS_ON)
  }

  next(prompt: string): Promise<Entry> {
    const early = this.#early.shift()
    if (early !== undefined) {
      this.#terminal.stderr.write(early.kind === 'text' ? `${prompt}${early.text}\n` : '')
      return Promise.resolve(early)
    }
    if (this.#isClosed) return Promise.resolve({ kind: 'end' })
    this.#prompt = prompt
    this.#screen.isMuted = false
    return new Promise((resolve) => {
      this.#waiting = resolve
      this.#show(this.#text.isEmpty ? prompt : CONTINUATION)
    })
  }

  stoppable(): Stoppable {
    const controller = new AbortController()
    this.#answer = controller
    const release = () => {
      this.#answer = null
    }
    return { signal: controller.signal, release }
  }

  async close(): Promise<void> {
    if (!this.#isClosed) this.#editor.close()
    process.off('SIGINT', this.#interrupt)
    process.off('exit', this.#restore)
    this.#restore()
    this.#screen.destroy()
  }

  #show(prompt: string): void {
    this.#editor.setPrompt(prompt)
    this.#editor.prompt(true)
  }

  #entered(line: string): void {
    if (this.#isPasting) this.#text.keep(line)
    const text = this.#isPasting ? null : this.#text.push(line)
    // the line break after a pasted block is not part of it
    if (text !== null) this.#give({ kind: 'text', text: text.replace(/\n$/, '') })
    else if (this.#waiting !== null) this.#show(CONTINUATION)
  }

  #give(entry: Entry): void {
    const waiting = this.#waiting
    this.#waiting = null
    if (waiting === null) {
      this.#early.push(entry)
      return
    }
    this.#screen.isMuted = true
    waiting(entry)
  }

  /** Stops the answer; or else drops the text that is being typed; or else tells that there was nothing to drop. */
  #interrupted(): void {
    const hadText = this.#editor.line !== '' || !this.#text.isEmpty
    this.#forget()
    if (this.#answer !== null) {
      if (this.#answer.signal.aborted) process.exit(EXIT.interrupted)
      this.#early.length = 0
      this.#answer.abort(new Error('interrupted'))
      return
    }
    this.#screen.write('^C\n')
    if (!hadText || this.#waiting === null) this.#give({ kind: 'interrupt' })
    else this.#show(this.#prompt)
  }

  #forget(): void {
    this.#text.clear()
    this.#isPasting = false
    this.#editor.write(null, { ctrl: true, name: 'e' })
    this.#editor.write(null, { ctrl: true, name: 'u' })
  }

  /** With a bracketed paste the terminal says where it begins and ends. */
  #pasted(key: string | undefined): void {
    if (key === 'paste-start') this.#isPasting = true
    if (key === 'paste-end') this.#isPasting = false
  }

  #ended(): void {
    this.#isClosed = true
    if (this.#waiting === null) return
    this.#screen.write('\n')
    this.#give({ kind: 'end' })
  }

  #markPastes(sequence: string): void {
    if (!this.#terminal.isDumb) this.#terminal.stderr.write(sequence)
  }
}
