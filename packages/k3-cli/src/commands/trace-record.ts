import type { Model } from '@k3/engine'
import { writeTrace } from '@k3/moe-cache/traces'
import { Command } from 'commander'
import { EXIT } from '../exit-codes.js'
import { stopOnInterrupt } from '../interrupt.js'
import { type ModelFlags, modelFolders, openFlagged, withRunFlags } from '../model-flags.js'
import { Output } from '../output.js'
import { keepApart } from '../output-files.js'
import { filePath, idList, wholeNumber } from '../parse-option.js'
import { readPrompt } from '../read-text.js'
import type { Terminal } from '../terminal.js'
import { requireTokenizer } from '../tokenizer-of.js'
import { RoutingRecorder } from '../trace/routing-recorder.js'
import { TraceOutput } from '../trace/trace-output.js'
import { UsageError } from '../usage-error.js'

interface RecordFlags extends ModelFlags {
  readonly out: string
  readonly promptFile?: string
  readonly ids?: number[]
  readonly maxTokens: number
  readonly json?: true
  readonly quiet?: true
}

/** `k3 trace record`: continue a prompt greedily and write down which experts were chosen. */
export const recordTraceCommand = (terminal: Terminal): Command =>
  withRunFlags(
    new Command('record')
      .description('continue a prompt greedily and write down which experts are chosen')
      .argument('[prompt]', 'text to continue')
      .requiredOption('--out <file>', 'trace file to write', filePath)
      .option('--model <dir>', 'checkpoint folder (default: the shipped demo model)', filePath)
  )
    .option('--layers <n>', 'run only the first layers', wholeNumber(1))
    .option('--prompt-file <file>', 'read the prompt from a file, - for standard input')
    .option('--ids <list>', 'token ids instead of a text, like 1,2,3', idList)
    .option('--max-tokens <n>', 'the most tokens to generate', wholeNumber(1), 512)
    .option('--json', 'print one object')
    .option('--quiet', 'nothing on stderr but errors')
    .addHelpText(
      'after',
      '\nExample:\n  k3 trace record "Once upon a time" --max-tokens 64 --out once.k3trace'
    )
    .action((prompt: string | undefined, flags: RecordFlags) => run(prompt, flags, terminal))

const run = async (prompt: string | undefined, flags: RecordFlags, terminal: Terminal): Promise<void> => {
  const text = await promptText(prompt, flags, terminal)
  keepApart({
    outputs: { '--out': flags.out },
    inputs: { '--prompt-file': flags.promptFile },
    folders: modelFolders(flags)
  })
  using file = new TraceOutput(flags.out)
  const output = new Output(terminal, flags)
  const recorder = new RoutingRecorder()
  const model = await openFlagged(flags, output, { parts: { layer: recorder.watch } })
  const interrupt = stopOnInterrupt()
  try {
    const { topK, expertCount } = model.config.moe
    recorder.start(topK)
    const ids = text === null ? flags.ids! : requireTokenizer(model).encode(text)
    const generated = await follow(model, { ids, flags, output, signal: interrupt.signal })
    const bytes = writeTrace({ trace: recorder.trace, expertCount, expertBytes: slotBytes(model) })
    file.write(bytes)
    const { hits, misses } = model.traffic
    const { cacheSlots: slots } = model
    const summary = { file: flags.out, bytes: bytes.length, prompt_tokens: ids.length, tokens: generated }
    if (flags.json !== undefined) output.json({ ...summary, cache: { slots, hits, misses } })
    else output.answer(`${flags.out}: ${ids.length} + ${generated} tokens, ${bytes.length} bytes\n`)
    output.note(`${slots} slots: ${hits} hits, ${misses} misses`)
    if (interrupt.signal.aborted) terminal.exitCode = EXIT.interrupted
  } finally {
    interrupt.release()
    await model[Symbol.asyncDispose]()
  }
}

const promptText = async (
  prompt: string | undefined,
  { promptFile, ids }: RecordFlags,
  terminal: Terminal
): Promise<string | null> => {
  if ([prompt, promptFile, ids].filter((way) => way !== undefined).length !== 1)
    throw new UsageError('give a prompt in one way: as an argument, with --prompt-file or with --ids')
  if (ids !== undefined) return null
  return prompt === undefined ? await readPrompt(promptFile!, terminal) : prompt
}

interface Following {
  readonly ids: readonly number[]
  readonly flags: RecordFlags
  readonly output: Output
  readonly signal: AbortSignal
}

/** Generates, and returns how many tokens; an interrupt ends the run and keeps what was recorded. */
const follow = async (model: Model, { ids, flags, output, signal }: Following): Promise<number> => {
  let tokens = 0
  try {
    for await (const part of model.generate({ ids: [...ids], maxTokens: flags.maxTokens, signal })) {
      if (part.type === 'text' && part.id !== null) tokens++
      output.progress(`${tokens} of at most ${flags.maxTokens} tokens`)
    }
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
  }
  return tokens
}

/** Memory of one expert in the model's cache. */
const slotBytes = ({ memory }: Model): number => {
  const cache = memory.terms.find(({ component }) => component === 'expert cache')
  return cache === undefined || memory.cacheSlots === 0 ? 0 : cache.bytes / memory.cacheSlots
}
