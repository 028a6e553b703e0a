import type { Tokenizer } from '@k3/tokenizer'
import { parseOutput } from '@k3/tokenizer/xtml'
import { Command } from 'commander'
import { answerJson, type JsonFlags, parseValue } from '../json-lines.js'
import { isTokenIds } from '../parse-option.js'
import type { Terminal } from '../terminal.js'
import { openTokenizerOf, TOKENIZER_FLAG } from '../tokenizer-of.js'
import { UsageError } from '../usage-error.js'

interface ParseFlags extends JsonFlags {
  readonly tokenizer?: string
}

/** `k3 parse`: the ids of a generated message to its channels and tool calls. */
export const parseCommand = (terminal: Terminal): Command =>
  new Command('parse')
    .description('parse a generated message {"start": "think" | "response" | null, "ids": […]}')
    .argument('[file]', 'JSON text, - for standard input', '-')
    .option(...TOKENIZER_FLAG)
    .option('--json', 'print the object on one line')
    .option('--jsonl', 'a message a line in, an object a line out')
    .addHelpText('after', EXAMPLE)
    .action((file: string, flags: ParseFlags) => run(file, flags, terminal))

const EXAMPLE = `
Example:
  echo '{"start": "response", "ids": [39, 72]}' | k3 parse --json

start is the channel the prompt left open. A message that cannot be read gives {"error": {"code", "message"}}, and exit
code 1 unless --jsonl is given.`

const run = async (file: string, flags: ParseFlags, terminal: Terminal): Promise<void> => {
  const tokenizer = openTokenizerOf(flags.tokenizer)
  await answerJson(file, flags, terminal, (text, name) =>
    parseMessage(parseValue(text, name), name, tokenizer)
  )
}

const parseMessage = (message: unknown, name: string, tokenizer: Tokenizer): object => {
  const expected = 'an object with "start" ("think", "response" or null) and "ids" (a list of token ids)'
  if (typeof message !== 'object' || message === null) throw new UsageError(`${name}: expected ${expected}`)
  const { start, ids, ...rest } = message as { start?: unknown; ids?: unknown }
  const known = start === 'think' || start === 'response' || start === null
  if (!known || !isTokenIds(ids) || Object.keys(rest).length > 0) {
    throw new UsageError(`${name}: expected ${expected} and nothing else`)
  }
  const output = parseOutput(ids, { start, tokenizer })
  const { reasoning, content, tool_calls, complete, truncated_call } = output
  const cut = truncated_call === null ? {} : { truncated_call }
  return { reasoning, content, tool_calls, complete, ...cut }
}
