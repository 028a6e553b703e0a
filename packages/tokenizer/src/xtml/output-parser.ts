import { XtmlError } from './errors.js'
import { type Marker, MessageParser } from './message-parser.js'
import type { OpenChannel, OutputEvent, OutputTokenizer, ParsedOutput } from './output.js'
import { CLOSE, END_OF_MESSAGE, OPEN, SEP } from './segments.js'

/** How to read an output. */
export interface OutputOptions {
  readonly start: OpenChannel
  readonly tokenizer: OutputTokenizer
}

/** A parser fed id by id. */
export interface OutputParser {
  /**
   * What this id adds, often nothing; ids after the end of the message are ignored.
   * @throws ERR_XTML_PARSER after `end`, and what the tokenizer throws for an id it does not know
   */
  push(id: number): readonly OutputEvent[]
  /** The whole message, and in `events` what its end itself adds: the text of an unfinished last character. */
  end(): ParsedOutput & { readonly events: readonly OutputEvent[] }
}

const MARKERS: readonly (readonly [Marker, string])[] = [
  ['open', OPEN],
  ['close', CLOSE],
  ['sep', SEP],
  ['end', END_OF_MESSAGE]
]

const markersOf = (tokenizer: OutputTokenizer): ReadonlyMap<number, Marker> =>
  new Map(
    MARKERS.map(([marker, name]) => {
      const id = tokenizer.specials.get(name)
      if (id === undefined) {
        const problem = 'the vocabulary has no special token of this name; load the tokenizer_config.json'
        throw new XtmlError('ERR_XTML_MARKER', name, problem)
      }
      return [id, marker]
    })
  )

/** The final output, summed up from the events. */
class Summary {
  private reasoning = ''
  private content = ''
  private readonly calls: { readonly name: string; readonly arguments: string }[] = []

  add(events: readonly OutputEvent[]): void {
    for (const event of events) {
      if (event.type === 'reasoning') this.reasoning += event.text
      else if (event.type === 'text') this.content += event.text
      else if (event.type === 'tool-call-end') {
        this.calls.push({ name: event.name, arguments: event.arguments })
      }
    }
  }

  output(complete: boolean, truncatedCall: string | null): ParsedOutput {
    let reason: ParsedOutput['finish_reason'] = complete ? 'stop' : 'length'
    if (this.calls.length > 0 && truncatedCall === null) reason = 'tool_calls'
    return {
      reasoning: this.reasoning,
      content: this.content,
      tool_calls: this.calls,
      complete,
      finish_reason: reason,
      truncated_call: truncatedCall
    }
  }
}

/**
 * A parser of generated ids. Only the ids of the four markers are structure: text that spells a marker is data.
 * `start` is the channel that the prompt left open. Source: XTML.md §9.
 * @throws ERR_XTML_MARKER when the vocabulary lacks a marker, ERR_XTML_PARSER for another `start`
 */
export const createOutputParser = ({ start, tokenizer }: OutputOptions): OutputParser => {
  if (start !== 'think' && start !== 'response' && start !== null) {
    throw new XtmlError(
      'ERR_XTML_PARSER',
      'start',
      `expected think, response or null, found ${String(start)}`
    )
  }
  const markers = markersOf(tokenizer)
  const decoder = tokenizer.stream()
  const message = new MessageParser(start)
  const summary = new Summary()
  let ended = false

  const taken = (): readonly OutputEvent[] => {
    const { events } = message
    message.events = []
    summary.add(events)
    return events
  }

  return {
    push(id) {
      if (ended) throw new XtmlError('ERR_XTML_PARSER', 'push', 'the output has ended; create another parser')
      if (message.done) return []
      const marker = markers.get(id)
      if (marker === undefined) {
        message.text(decoder.push(id))
      } else {
        message.text(decoder.flush())
        message.marker(marker)
      }
      return taken()
    },
    end() {
      ended = true
      if (!message.done) message.text(decoder.flush())
      const events = taken()
      return { ...summary.output(message.done, message.openCall), events }
    }
  }
}

/**
 * Parses a whole output at once; the result is that of a parser fed id by id.
 * @throws ERR_XTML_MARKER, ERR_XTML_PARSER, and what the tokenizer throws for an id it does not know
 */
export const parseOutput = (ids: Iterable<number>, options: OutputOptions): ParsedOutput => {
  const parser = createOutputParser(options)
  for (const id of ids) parser.push(id)
  const { events: _, ...output } = parser.end()
  return output
}
