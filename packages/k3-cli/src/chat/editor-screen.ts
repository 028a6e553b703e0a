import { Writable } from 'node:stream'
import type { Terminal } from '../terminal.js'

/**
 * What the line editor draws on. While it is muted nothing appears, so that keys pressed during an answer do not break
 * into it; the editor shows them at its next prompt.
 */
export class EditorScreen extends Writable {
  readonly isTTY = true
  isMuted = true
  readonly #target: Terminal['stderr']
  readonly #resized = () => void this.emit('resize')

  constructor(target: Terminal['stderr']) {
    super({ decodeStrings: false })
    this.#target = target
    target.on('resize', this.#resized)
  }

  /** While muted the line has no end: a wrapped one would have the editor move up at its next prompt, into the answer. */
  get columns(): number {
    const { columns } = this.#target
    return this.isMuted || columns === undefined ? Number.POSITIVE_INFINITY : columns
  }

  override _write(text: string | Uint8Array, _encoding: string, done: () => void): void {
    if (!this.isMuted) this.#target.write(text)
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#target.off('resize', this.#resized)
    done(error)
  }
}
