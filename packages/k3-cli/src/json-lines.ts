import { codeOf, EXIT } from './exit-codes.js'
import { Output } from './output.js'
import { inputChunks, inputName, readText, utf8 } from './read-text.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

const LINE_FEED = 0x0a

/** What is wrong with one input, in place of its answer; throws on what has no code: that is no fault of the input. */
export const errorObject = (error: unknown): { error: { code: string; message: string } } => {
  const code = codeOf(error)
  if (code === null) throw error
  return { error: { code, message: (error as Error).message } }
}

/** A JSON value. @throws UsageError when the text is none */
export const parseValue = (text: string, name: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new UsageError(`${name} is not JSON: ${(cause as Error).message}`, { cause })
  }
}

/** How a command turns the JSON text of one input into the object it prints; `name` is what messages call the input. */
export type AnswerText = (text: string, name: string) => object

/** Flags of a command that answers JSON with JSON. */
export interface JsonFlags {
  readonly json?: true
  readonly jsonl?: true
}

/** Answers one input, or with --jsonl each line of it. Without --json the object is indented for people. */
export const answerJson = async (
  file: string,
  { json, jsonl }: JsonFlags,
  terminal: Terminal,
  answer: AnswerText
): Promise<void> => {
  if (json !== undefined && jsonl !== undefined) throw new UsageError('--json and --jsonl exclude each other')
  const output = new Output(terminal)
  if (jsonl !== undefined) return answerLines(inputChunks(file, terminal), output, answer)
  const result = attempt(answer, await readText(file, terminal), inputName(file))
  if ('error' in result) terminal.exitCode = EXIT.failure
  output.answer(`${JSON.stringify(result, null, json === undefined ? 2 : 0)}\n`)
}

const attempt = (answer: AnswerText, text: string, name: string): object => {
  try {
    return answer(text, name)
  } catch (error) {
    return errorObject(error)
  }
}

/**
 * Answers every line of the input with one JSON object a line, in order; a line that is refused gets an object with
 * `error` in its place. Answers are written as soon as the lines at hand are done, so that a pipe can be a dialogue.
 */
export const answerLines = async (
  input: AsyncIterable<Uint8Array>,
  output: Output,
  answer: AnswerText
): Promise<void> => {
  let number = 0
  const answerLine = (bytes: Uint8Array): string => {
    const name = `line ${++number}`
    try {
      return `${JSON.stringify(answer(utf8(bytes, name), name))}\n`
    } catch (error) {
      return `${JSON.stringify(errorObject(error))}\n`
    }
  }
  let unfinished: Uint8Array[] = []
  for await (const chunk of input) {
    let answers = ''
    let at = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, at)) {
      const tail = chunk.subarray(at, end)
      answers += answerLine(unfinished.length === 0 ? tail : Buffer.concat([...unfinished, tail]))
      unfinished = []
      at = end + 1
    }
    if (at < chunk.length) unfinished.push(chunk.subarray(at))
    if (answers !== '') output.answer(answers)
    await output.drained()
  }
  if (unfinished.length > 0) output.answer(answerLine(Buffer.concat(unfinished)))
}
