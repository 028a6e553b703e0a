import { once } from 'node:events'
import { codeOf } from './exit-codes.js'
import type { Terminal } from './terminal.js'

// On a pipe or in a log file, progress that comes more often than this is noise.
const PLAIN_PROGRESS_MS = 10_000

/** The line an error ends a command with: its message, and the stable code when it has one. */
export const errorLine = (error: unknown): string => {
  const code = codeOf(error)
  const message = error instanceof Error ? error.message : String(error)
  return `k3: ${message}${code === null ? '' : ` [${code}]`}\n`
}

/** Where a command's words go: stdout for the answer alone, stderr for everything else. */
export class Output {
  readonly #terminal: Terminal
  readonly #quiet: boolean
  #transient = 0
  #progressAtMs = performance.now()

  constructor(terminal: Terminal, { quiet = false }: { readonly quiet?: boolean | undefined } = {}) {
    this.#terminal = terminal
    this.#quiet = quiet
  }

  /** A piece of the answer. */
  answer(text: string | Uint8Array): void {
    this.#clear()
    this.#terminal.stdout.write(text)
  }

  /** One JSON value on a line of its own. */
  json(value: unknown): void {
    this.answer(`${JSON.stringify(value)}\n`)
  }

  /** Waits until the reader of stdout has caught up. */
  async drained(): Promise<void> {
    const { stdout } = this.#terminal
    if (stdout.writableNeedDrain) await once(stdout, 'drain')
  }

  /** A line beside the answer; silent with --quiet. */
  note(line: string): void {
    if (this.#quiet) return
    this.#clear()
    this.#terminal.stderr.write(`${line}\n`)
  }

  /** A line about what went wrong; not even --quiet keeps it back. */
  problem(line: string): void {
    this.#clear()
    this.#terminal.stderr.write(`${line}\n`)
  }

  /** Reasoning as it comes: dimmed where the terminal can. */
  aside(text: string): void {
    if (this.#quiet) return
    this.#clear()
    const { stderr, noColor } = this.#terminal
    stderr.write(stderr.isTTY === true && !noColor ? `\u001b[2m${text}\u001b[22m` : text)
  }

  /** How far something is: a line that the next one replaces; elsewhere than on a terminal a plain line now and then. */
  progress(line: string): void {
    if (this.#quiet) return
    const { stderr } = this.#terminal
    if (stderr.isTTY === true) {
      const shown = line.slice(0, stderr.columns === undefined ? 79 : stderr.columns - 1)
      stderr.write(`\r${shown.padEnd(this.#transient)}`)
      this.#transient = shown.length
      return
    }
    const now = performance.now()
    if (now - this.#progressAtMs < PLAIN_PROGRESS_MS) return
    this.#progressAtMs = now
    stderr.write(`${line}\n`)
  }

  #clear(): void {
    if (this.#transient === 0) return
    this.#terminal.stderr.write(`\r${' '.repeat(this.#transient)}\r`)
    this.#transient = 0
  }
}
