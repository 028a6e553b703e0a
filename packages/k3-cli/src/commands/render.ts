import { encodeSegments, parseRequest, renderChat } from '@k3/tokenizer/xtml'
import { Command } from 'commander'
import { answerJson, type JsonFlags } from '../json-lines.js'
import type { Terminal } from '../terminal.js'
import { openTokenizerOf, TOKENIZER_FLAG } from '../tokenizer-of.js'

interface RenderFlags extends JsonFlags {
  readonly tokenizer?: string
  readonly r1?: true
}

/** `k3 render`: a chat request to the segments and ids of its prompt. */
export const renderCommand = (terminal: Terminal): Command =>
  new Command('render')
    .description('render a chat request {"messages": …, "tools": …, "options": {…}} to segments and ids')
    .argument('[file]', 'JSON text, - for standard input', '-')
    .option(...TOKENIZER_FLAG)
    .option('--r1', "revision R1 of the official encoder (default: R2, today's)")
    .option('--json', 'print the object on one line')
    .option('--jsonl', 'a request a line in, an object a line out')
    .addHelpText('after', EXAMPLE)
    .action((file: string, flags: RenderFlags) => run(file, flags, terminal))

const EXAMPLE = `
Example:
  echo '{"messages": [{"role": "user", "content": "Hi"}]}' | k3 render --json

A request that cannot be rendered gives {"error": {"code", "message"}}, and exit code 1 unless --jsonl is given.`

const run = async (file: string, flags: RenderFlags, terminal: Terminal): Promise<void> => {
  const tokenizer = openTokenizerOf(flags.tokenizer)
  const revision = flags.r1 === undefined ? 'R2' : 'R1'
  await answerJson(file, flags, terminal, (text) => {
    const segments = renderChat(parseRequest(text), revision)
    return {
      segments: segments.map(([part, special]) => [part, special ? 1 : 0]),
      ids: encodeSegments(segments, tokenizer),
      text: segments.map(([part]) => part).join('')
    }
  })
}
