import type { ChatResult, ChatToolCall } from '@k3/engine/chat'
import { codeOf, EXIT } from '../exit-codes.js'
import { UsageError } from '../usage-error.js'
import { AnswerView } from './answer-view.js'
import { type CommandScope, readLine, runCommand } from './commands.js'
import { screenText } from './screen-text.js'
import type { TurnSource } from './turn-source.js'

const PROMPT = '> '

/** The loop: a turn or a command, its answer, the results of the tools it calls. */
export class Repl {
  readonly #scope: CommandScope
  readonly #source: TurnSource
  /** Ctrl-C came last, so that another one quits. */
  #isLeaving = false

  constructor(scope: CommandScope, source: TurnSource) {
    this.#scope = scope
    this.#source = source
  }

  /** @returns the exit code; what goes wrong is said and the chat goes on when somebody is there to try again */
  async run(): Promise<number> {
    while (true) {
      const entry = await this.#source.next(PROMPT)
      if (entry.kind === 'end') return EXIT.ok
      if (entry.kind === 'interrupt') {
        if (this.#isLeaving) return EXIT.interrupted
        this.#isLeaving = true
        this.#scope.output.note('Ctrl-C once more quits, and so does /quit')
        continue
      }
      this.#isLeaving = false
      if (entry.text.trim() === '') continue
      try {
        if (!(await this.#take(entry.text))) return EXIT.ok
      } catch (error) {
        this.#report(error)
      }
      if (this.#isLeaving && !this.#source.isInteractive) return EXIT.interrupted
    }
  }

  /** @returns whether the chat goes on */
  async #take(text: string): Promise<boolean> {
    const line = readLine(text)
    if (line.kind === 'command') return runCommand(line.name, line.argument, this.#scope)
    const { conversation } = this.#scope.dialogue
    const before = conversation.state.messages.length
    try {
      conversation.user(line.text)
      if (!(await this.#answer())) conversation.takeBack(before)
    } catch (error) {
      conversation.takeBack(before)
      throw error
    }
    return true
  }

  /** Answers until no tool is called. @returns false when the turn came to nothing */
  async #answer(): Promise<boolean> {
    while (true) {
      const { finishReason, ids, toolCalls } = await this.#answerOnce()
      if (finishReason === 'abort') {
        this.#isLeaving = true
        this.#scope.output.note(ids.length === 0 ? 'stopped; the turn is taken back' : 'stopped')
        return ids.length > 0
      }
      if (toolCalls.length === 0) return true
      if (!(await this.#askResults(toolCalls))) return false
    }
  }

  async #answerOnce(): Promise<ChatResult> {
    const { dialogue, output } = this.#scope
    const stoppable = this.#source.stoppable()
    const view = this.#view()
    try {
      const { result, isForgotten } = await dialogue.answer(stoppable.signal, (part) => view.show(part))
      this.#scope.latestReasoning = result.reasoning
      if (isForgotten) output.note('this chat outgrows --prefix-cache: its next turn runs all of it again')
      if (result.finishReason === 'length') output.note('cut off at --max-tokens or the end of the context')
      return result
    } finally {
      stoppable.release()
    }
  }

  /** @returns false when the person would not give them */
  async #askResults(calls: readonly ChatToolCall[]): Promise<boolean> {
    for (const call of calls) {
      const entry = await this.#source.next(`result of ${screenText(call.name)}> `)
      if (entry.kind === 'text') {
        this.#scope.dialogue.conversation.toolResult(call, entry.text)
        continue
      }
      if (!this.#source.isInteractive) {
        throw new UsageError(`the input ends where the result of ${screenText(call.name)} is expected`)
      }
      this.#scope.output.note('no result; the turn is taken back')
      return false
    }
    return true
  }

  #view(): AnswerView {
    const { output, terminal, showReasoning } = this.#scope
    const { isInteractive } = this.#source
    return new AnswerView(output, { showReasoning, isInteractive, isScreen: terminal.stdout.isTTY === true })
  }

  #report(error: unknown): void {
    const code = codeOf(error)
    if (!this.#source.isInteractive || code === null) throw error
    this.#scope.output.problem(`k3: ${screenText((error as Error).message)} [${code}]`)
  }
}
