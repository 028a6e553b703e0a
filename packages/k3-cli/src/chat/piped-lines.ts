import type { Readable } from 'node:stream'
import { type Stoppable, stopOnInterrupt } from '../interrupt.js'
import { utf8 } from '../read-text.js'
import { type Entry, type TurnSource, TurnText } from './turn-source.js'

const LINE_FEED = 0x0a

/** Standard input that is no terminal: whole lines are texts, and nothing is shown. */
export class PipedLines implements TurnSource {
  readonly isInteractive = false
  readonly #lines: AsyncGenerator<string>

  constructor(stdin: Readable) {
    this.#lines = textLines(stdin)
  }

  /** @throws UsageError for a line that is not UTF-8 */
  async next(): Promise<Entry> {
    const text = new TurnText()
    while (true) {
      const { value, done } = await this.#lines.next()
      if (done === true) break
      const whole = text.push(value)
      if (whole !== null) return { kind: 'text', text: whole }
    }
    return text.isEmpty ? { kind: 'end' } : { kind: 'text', text: text.push('')!.slice(0, -1) }
  }

  stoppable(): Stoppable {
    return stopOnInterrupt()
  }

  async close(): Promise<void> {
    await this.#lines.return(undefined)
  }
}

/** Lines without their ends, LF or CR LF; a byte order mark, which editors add unasked, is no part of the first. */
async function* textLines(stdin: Readable): AsyncGenerator<string> {
  let number = 0
  const textOf = (pieces: readonly Uint8Array[]): string => {
    const line = utf8(Buffer.concat(pieces), `line ${++number}`).replace(/\r$/, '')
    return number === 1 ? line.replace(/^\ufeff/, '') : line
  }
  let unfinished: Uint8Array[] = []
  for await (const chunk of stdin as AsyncIterable<Uint8Array>) {
    let at = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, at)) {
      const line = [...unfinished, chunk.subarray(at, end)]
      unfinished = []
      at = end + 1
      yield textOf(line)
    }
    if (at < chunk.length) unfinished.push(chunk.subarray(at))
  }
  if (unfinished.length > 0) yield textOf(unfinished)
}
