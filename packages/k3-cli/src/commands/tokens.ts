import type { Tokenizer } from '@k3/tokenizer'
import { Command } from 'commander'
import { answerLines, type JsonFlags, parseValue } from '../json-lines.js'
import { Output } from '../output.js'
import { isTokenIds } from '../parse-option.js'
import { inputChunks, inputName, readText } from '../read-text.js'
import type { Terminal } from '../terminal.js'
import { openTokenizerOf, TOKENIZER_FLAG } from '../tokenizer-of.js'
import { UsageError } from '../usage-error.js'

interface TokensFlags extends JsonFlags {
  readonly tokenizer?: string
  readonly special?: true
  readonly decode?: true
  readonly pieces?: true
}

/** `k3 tokens`: text to token ids and back. */
export const tokensCommand = (terminal: Terminal): Command =>
  new Command('tokens')
    .description('turn text into token ids, or ids into text')
    .argument('[file]', 'UTF-8 text, or ids with --decode; - for standard input', '-')
    .option(...TOKENIZER_FLAG)
    .option('--special', 'names of special tokens become their ids (default: they are ordinary text)')
    .option('--decode', 'ids in, their bytes out')
    .option('--pieces', 'show the pieces in which the text is encoded, one JSON string a line')
    .option('--json', 'print {"ids": […]}, or {"text": …, "bytes": "hex"} with --decode')
    .option('--jsonl', 'a JSON string (with --decode a list of ids) a line in, an object a line out')
    .addHelpText('after', EXAMPLE)
    .action((file: string, flags: TokensFlags) => run(file, flags, terminal))

const EXAMPLE = `
Examples:
  echo -n "Hello" | k3 tokens
  echo "[39, 72]" | k3 tokens --decode

The input is taken byte for byte: a byte order mark and the last line break are part of it. With --jsonl a line that
cannot be read gives {"error": {"code", "message"}} in its place.`

const run = async (file: string, flags: TokensFlags, terminal: Terminal): Promise<void> => {
  refuseContradictions(flags)
  const tokenizer = openTokenizerOf(flags.tokenizer)
  const output = new Output(terminal)
  if (flags.jsonl !== undefined) {
    const answer = flags.decode === undefined ? encodeLine : decodeLine
    return answerLines(inputChunks(file, terminal), output, (text, name) =>
      answer(parseValue(text, name), name, tokenizer, flags)
    )
  }
  const text = await readText(file, terminal)
  if (flags.decode === undefined) printIds(encoded(text, tokenizer, flags), output, flags)
  else printText(idsIn(text, inputName(file)), tokenizer, output, flags)
}

const refuseContradictions = ({ special, decode, pieces, json, jsonl }: TokensFlags): void => {
  if (json !== undefined && jsonl !== undefined) throw new UsageError('--json and --jsonl exclude each other')
  if (decode === undefined) return
  if (special !== undefined) throw new UsageError('--special has no effect with --decode')
  if (pieces !== undefined) throw new UsageError('--pieces has no effect with --decode')
}

interface Encoded {
  readonly ids: readonly number[]
  /** With --pieces: those of the pre-tokenizer, names of special tokens as ordinary text. */
  readonly pieces?: readonly string[]
}

const encoded = (text: string, tokenizer: Tokenizer, { special, pieces }: TokensFlags): Encoded => {
  const ids = tokenizer.encode(text, { special: special === true })
  return pieces === undefined ? { ids } : { ids, pieces: tokenizer.pieces(text) }
}

const decoded = (ids: readonly number[], tokenizer: Tokenizer): { text: string; bytes: string } => ({
  text: tokenizer.decode(ids),
  bytes: Buffer.from(tokenizer.decodeBytes(ids)).toString('hex')
})

const encodeLine = (value: unknown, name: string, tokenizer: Tokenizer, flags: TokensFlags): Encoded => {
  if (typeof value !== 'string') throw new UsageError(`${name}: expected a JSON string`)
  return encoded(value, tokenizer, flags)
}

const decodeLine = (value: unknown, name: string, tokenizer: Tokenizer): object => {
  if (!isTokenIds(value)) throw new UsageError(`${name}: expected a JSON list of token ids`)
  return decoded(value, tokenizer)
}

const printIds = (answer: Encoded, output: Output, { json }: TokensFlags): void => {
  const { ids, pieces } = answer
  if (json !== undefined) output.json(answer)
  else if (pieces === undefined) output.answer(`${ids.join(' ')}\n`)
  else output.answer(pieces.map((piece) => `${JSON.stringify(piece)}\n`).join(''))
}

const printText = (
  ids: readonly number[],
  tokenizer: Tokenizer,
  output: Output,
  { json }: TokensFlags
): void => {
  if (json === undefined) output.answer(tokenizer.decodeBytes(ids))
  else output.json(decoded(ids, tokenizer))
}

/** Ids as people write them: a JSON list, or numbers separated by spaces, line breaks or commas. */
const idsIn = (text: string, name: string): readonly number[] => {
  const list = text.trim()
  const ids: unknown = list.startsWith('[') ? parseValue(list, name) : numbers(list)
  if (isTokenIds(ids)) return ids
  throw new UsageError(
    `${name}: expected token ids, as a JSON list or separated by spaces, line breaks or commas`
  )
}

const numbers = (list: string): number[] =>
  list === '' ? [] : list.split(/\s*,\s*|\s+/).map((word) => (/^\d+$/.test(word) ? Number(word) : Number.NaN))
