import type { Model } from '@k3/engine'
import { recommendedSampling } from '@k3/engine/sampling'
import { Command, Option } from 'commander'
import { type CommandScope, load, readTools } from '../chat/commands.js'
import { THINKING, type Thinking } from '../chat/conversation.js'
import { Dialogue } from '../chat/dialogue.js'
import { LineEditor } from '../chat/line-editor.js'
import { PipedLines } from '../chat/piped-lines.js'
import { Repl } from '../chat/repl.js'
import {
  type ModelFlags,
  openFlagged,
  type SpeculationFlag,
  withFastExpertsFlag,
  withRunFlags,
  withSpeculationFlag
} from '../model-flags.js'
import { Output } from '../output.js'
import { filePath, gigabytes, wholeNumber } from '../parse-option.js'
import { type ChosenSampler, chooseSampler, type SamplingFlags, withSamplingFlags } from '../sampling.js'
import type { Terminal } from '../terminal.js'
import { UsageError } from '../usage-error.js'

interface ChatFlags extends ModelFlags, SamplingFlags, SpeculationFlag {
  readonly system?: string
  readonly tools?: string
  readonly think?: Thinking
  readonly reasoning: boolean
  readonly load?: string
  readonly maxTokens: number
  readonly prefixCache: number | 'auto'
  readonly quiet?: true
}

/** `k3 chat`: talk with the model, at a terminal or through a pipe. */
export const chatCommand = (terminal: Terminal): Command =>
  withSpeculationFlag(
    withSamplingFlags(
      withFastExpertsFlag(
        withRunFlags(
          new Command('chat')
            .description('talk with the model; lines of a pipe are user turns, stdout gets the answers only')
            .option('--model <dir>', 'checkpoint folder (default: the shipped demo model)', filePath)
        )
      ),
      recommendedSampling
    )
  )
    .option('--layers <n>', 'run only the first layers', wholeNumber(1))
    .option('--system <text>', 'a system turn before the others')
    .option('--tools <file>', 'JSON list of tools that the model may call; you give their results')
    .addOption(new Option('--think <how>', 'how much it thinks (default: max)').choices(THINKING))
    .option('--no-reasoning', 'do not show the reasoning')
    .option('--load <file>', 'go on with a chat that /save saved')
    .option('--max-tokens <n>', 'the most tokens of an answer, reasoning included', wholeNumber(1), 4096)
    .addOption(
      new Option('--prefix-cache <gb>', 'memory that keeps earlier turns from running again')
        .argParser(gigabytes)
        .default('auto', 'a sixteenth of --ram, at most 4')
    )
    .option('--quiet', 'nothing on stderr but errors')
    .addHelpText('after', EXAMPLE)
    .action((flags: ChatFlags) => run(flags, terminal))

const EXAMPLE = `
Examples:
  k3 chat --temperature 0
  echo "How many layers does Kimi K3 have?" | k3 chat

/help lists the commands. Ctrl-C stops an answer, Ctrl-D ends the chat.`

const run = async (flags: ChatFlags, terminal: Terminal): Promise<void> => {
  const sampling = chooseSampler(flags, recommendedSampling)
  const tools = flags.tools === undefined ? undefined : await readTools(namedFile(flags.tools), terminal)
  const output = new Output(terminal, flags)
  const model = await openFlagged(flags, output, { prefixCacheBytes: flags.prefixCache })
  try {
    if (model.tokenizer === null) throw new UsageError('a chat needs the tokenizer files of the checkpoint')
    const { maxTokens, spec: speculate } = flags
    const { prefixCacheBytes } = model.memory
    const settings = { sampling, maxTokens, prefixCacheBytes, speculate }
    const dialogue = new Dialogue(model, settings)
    const scope: CommandScope = {
      dialogue,
      output,
      terminal,
      showReasoning: flags.reasoning,
      latestReasoning: ''
    }
    if (flags.load !== undefined) await load(flags.load, scope)
    dialogue.conversation.change(given({ system: flags.system, tools, thinking: flags.think }))
    const isInteractive = terminal.stdin.isTTY === true && terminal.stderr.isTTY === true
    if (isInteractive) greet(model, sampling, output)
    const source = isInteractive ? new LineEditor(terminal) : new PipedLines(terminal.stdin)
    try {
      terminal.exitCode = await new Repl(scope, source).run()
    } finally {
      await source.close()
    }
    output.note(`${dialogue.statistics.total}${seedNote(sampling)}`)
  } finally {
    await model[Symbol.asyncDispose]()
  }
}

const namedFile = (file: string): string => {
  if (file === '-') throw new UsageError('--tools needs a file: standard input is the conversation')
  return file
}

const given = <T extends object>(parts: T): Partial<{ [K in keyof T]: Exclude<T[K], undefined> }> =>
  Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)) as never

const greet = (model: Model, sampling: ChosenSampler, output: Output): void => {
  const { temperature, topP } = sampling
  const chosen = temperature === 0 ? 'temperature 0' : `temperature ${temperature}, top-p ${topP}`
  output.note(`${model.contextTokens} tokens of context, ${chosen}${seedNote(sampling)}, ${model.backend}`)
  output.note('/help lists the commands. Ctrl-C stops an answer, Ctrl-D ends the chat.')
}

const seedNote = ({ seed }: ChosenSampler): string => (seed === null ? '' : `, seed ${seed}`)
