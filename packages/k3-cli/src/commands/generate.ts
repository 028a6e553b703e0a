import type { Generation, Model } from '@k3/engine'
import { Command } from 'commander'
import { type Answer, ChatAnswer, IdAnswer, PlainAnswer, userTurnPrompt } from '../answer.js'
import { EXIT } from '../exit-codes.js'
import { stopOnInterrupt } from '../interrupt.js'
import {
  type ModelFlags,
  modelFolders,
  openFlagged,
  type SpeculationFlag,
  withFastExpertsFlag,
  withRunFlags,
  withSpeculationFlag
} from '../model-flags.js'
import { Output } from '../output.js'
import { keepApart } from '../output-files.js'
import { filePath, idList, wholeNumber } from '../parse-option.js'
import { readPrompt } from '../read-text.js'
import { type FinishReason, type RunReport, reportJson, reportLine } from '../report.js'
import { chooseSampler, GREEDY, LogitsDump, type SamplingFlags, withSamplingFlags } from '../sampling.js'
import type { Terminal } from '../terminal.js'
import { Timeline } from '../timeline.js'
import { requireTokenizer } from '../tokenizer-of.js'
import { UsageError } from '../usage-error.js'

interface GenerateFlags extends ModelFlags, SamplingFlags, SpeculationFlag {
  readonly promptFile?: string
  readonly ids?: number[]
  readonly chat?: true
  readonly system?: string
  readonly reasoning: boolean
  readonly maxTokens: number
  readonly dumpLogits?: string
  readonly timeline?: string
  readonly json?: true
  readonly quiet?: true
}

/** `k3 generate`: continue a prompt, or answer it. */
export const generateCommand = (terminal: Terminal): Command =>
  withSpeculationFlag(
    withSamplingFlags(
      withFastExpertsFlag(
        withRunFlags(
          new Command('generate')
            .description('continue a prompt, or answer it as a chat turn')
            .argument('[prompt]', 'text to continue; with --chat, what the user says')
            .option('--model <dir>', 'checkpoint folder (default: the shipped demo model)', filePath)
        )
      ),
      GREEDY
    )
  )
    .option('--layers <n>', 'run only the first layers', wholeNumber(1))
    .option('--prompt-file <file>', 'read the prompt from a file, - for standard input')
    .option('--ids <list>', 'token ids instead of a text, like 1,2,3', idList)
    .option('--chat', 'the prompt is a user turn; stdout gets the response channel only')
    .option('--system <text>', 'a system turn before it (needs --chat)')
    .option('--no-reasoning', 'do not show the reasoning on stderr (needs --chat)')
    .option('--max-tokens <n>', 'the most tokens to generate', wholeNumber(1), 512)
    .option('--dump-logits <file>', 'write the logits of the first step, raw float32', filePath)
    .option('--timeline <file>', 'write what ran and was read when, as a Chrome trace', filePath)
    .option('--json', 'print one object with ids, text, timings and counts')
    .option('--quiet', 'nothing on stderr but errors')
    .addHelpText('after', '\nExample:\n  k3 generate --chat "How many layers does Kimi K3 have?"')
    .action((prompt: string | undefined, flags: GenerateFlags) => run(prompt, flags, terminal))

const run = async (prompt: string | undefined, flags: GenerateFlags, terminal: Terminal): Promise<void> => {
  const source = await promptSource(prompt, flags, terminal)
  const { sampler, seed } = chooseSampler(flags)
  const output = new Output(terminal, flags)
  keepApart({
    outputs: { '--dump-logits': flags.dumpLogits, '--timeline': flags.timeline },
    inputs: { '--prompt-file': flags.promptFile },
    folders: modelFolders(flags)
  })
  using dump = flags.dumpLogits === undefined ? null : new LogitsDump(flags.dumpLogits)
  using timeline = flags.timeline === undefined ? null : new Timeline(flags.timeline)
  const started = performance.now()
  const model = await openFlagged(flags, output, timeline === null ? {} : timeline.watchers)
  const interrupt = stopOnInterrupt()
  try {
    const loadMs = performance.now() - started
    const ids = source.ids === null ? promptIds(model, source.text, flags) : source.ids
    const generation = model.generate({
      ids,
      maxTokens: flags.maxTokens,
      sampler: dump === null ? sampler : dump.tap(sampler),
      speculate: flags.spec,
      signal: interrupt.signal
    })
    const answer = answerFor(model, flags, flags.json === true ? null : output)
    const outcome = await follow(generation, { answer, output, signal: interrupt.signal })
    const report: RunReport = { ...outcome, answer: answer.end(), promptTokens: ids.length, loadMs, seed }
    if (flags.json === true) output.json(reportJson(report, model))
    output.note(reportLine(report, model))
    if (report.finishReason === 'abort') terminal.exitCode = EXIT.interrupted
  } finally {
    interrupt.release()
    await model[Symbol.asyncDispose]()
  }
  // only now are all reads over
  timeline?.finish()
}

/** Exactly one of the three ways to give a prompt. */
const promptSource = async (
  prompt: string | undefined,
  { promptFile, ids, chat, system, reasoning }: GenerateFlags,
  terminal: Terminal
): Promise<{ text: string; ids: null } | { text: null; ids: number[] }> => {
  const given = [prompt, promptFile, ids].filter((way) => way !== undefined).length
  if (given !== 1)
    throw new UsageError('give a prompt in one way: as an argument, with --prompt-file or with --ids')
  if (chat === undefined && system !== undefined) throw new UsageError('--system needs --chat')
  if (chat === undefined && !reasoning) throw new UsageError('--no-reasoning needs --chat')
  if (ids !== undefined) {
    if (chat !== undefined) throw new UsageError('--chat renders a text; it cannot be combined with --ids')
    return { text: null, ids }
  }
  return { text: prompt === undefined ? await readPrompt(promptFile!, terminal) : prompt, ids: null }
}

const promptIds = (model: Model, text: string, { chat, system }: GenerateFlags): number[] => {
  const tokenizer = requireTokenizer(model)
  return chat === undefined ? tokenizer.encode(text) : userTurnPrompt(tokenizer, text, system)
}

const answerFor = (model: Model, { chat, reasoning }: GenerateFlags, output: Output | null): Answer => {
  if (chat !== undefined) return new ChatAnswer(requireTokenizer(model), output, reasoning)
  return model.tokenizer === null ? new IdAnswer(output) : new PlainAnswer(output)
}

interface Following {
  readonly answer: Answer
  readonly output: Output
  readonly signal: AbortSignal
}

type Outcome = Pick<RunReport, 'ids' | 'firstTokenMs' | 'totalMs' | 'speculation'> & {
  finishReason: FinishReason
}

/** Prints the parts as they come. An interrupt ends the run and keeps what was generated. */
const follow = async (generation: Generation, { answer, output, signal }: Following): Promise<Outcome> => {
  const started = performance.now()
  const ids: number[] = []
  let firstTokenMs = 0
  let finishReason: FinishReason = 'abort'
  let speculation: RunReport['speculation'] = null
  try {
    for await (const part of generation) {
      if (part.type === 'progress')
        output.progress(`prefilling ${part.done.toFixed(1)} of ${part.total} tokens`)
      if (part.type === 'finish') {
        finishReason = part.finishReason
        speculation = part.speculation
      }
      if (part.type !== 'text') continue
      if (ids.length === 0) firstTokenMs = performance.now() - started
      if (part.id !== null) ids.push(part.id)
      answer.push(part.id, part.text)
    }
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
  }
  return { ids, firstTokenMs, totalMs: performance.now() - started, finishReason, speculation }
}
