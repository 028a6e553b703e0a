import { K3Error } from '../errors.js'
import type { GenerationResult } from '../generate.js'
import type { GenerationRequest } from '../generation-request.js'
import type { TokenLogprobs } from '../logprobs.js'
import type { Model } from '../model.js'
import { type PartsWithResult, partsWithResult } from '../parts-with-result.js'
import { AnswerReader } from './answer-reader.js'
import { chatConstraint } from './chat-constraint.js'
import type { AssistantMessage, ChatPart, ChatResult } from './chat-parts.js'
import { chatPrompt } from './chat-prompt.js'
import { type ChatRequest, checkChatRequest, refusedField, thinks } from './chat-request.js'

/** Async-iterable for the parts, awaitable for the result; leaving the loop early cancels the rest. */
export interface Chat extends PartsWithResult<ChatPart, ChatResult> {}

/**
 * Continues a conversation with one assistant message: iterate it for the parts, await it for the whole. Starts on the
 * first iteration or await, and runs once.
 * @throws ERR_K3_REQUEST naming the field that is unknown, missing or at odds with another one
 * @throws ERR_K3_SCHEMA with the JSON pointer of what a schema asks and cannot be enforced
 * @throws ERR_K3_NO_TOKENIZER when the checkpoint folder has no tokenizer files
 * @throws ERR_K3_GENERATION_CONSUMED when it is awaited after it was iterated
 * @throws XtmlError for a message or tool that cannot be rendered; what `model.generate` throws
 */
export const chat = (model: Model, request: ChatRequest): Chat =>
  partsWithResult<ChatPart, ChatResult>(run(model, request), 'the chat')

async function* run(model: Model, request: ChatRequest): AsyncGenerator<ChatPart> {
  checkChatRequest(request)
  const { tokenizer } = model
  if (tokenizer === null) {
    throw new K3Error('ERR_K3_NO_TOKENIZER', 'a chat needs the tokenizer files of the checkpoint')
  }
  const prompt = chatPrompt(request, tokenizer)
  const { stop = [], stopOnAbort = false, signal } = request
  const reader = new AnswerReader({
    tokenizer,
    start: thinks(request) ? 'think' : 'response',
    stop,
    eos: model.config.tokens.eos,
    earlierCalls: callsIn(request.messages)
  })
  const constraint = chatConstraint(model, tokenizer, request)
  const generation = { ...generationOf(model, request, prompt), constraint }
  const run = new ChatRun(model, generation, reader, prompt.length)
  try {
    yield* run.parts()
  } catch (error) {
    const aborted = signal?.aborted === true && error === signal.reason
    const { parts } = reader.end()
    yield* parts
    yield run.finish(aborted ? 'abort' : 'error')
    if (aborted && stopOnAbort) return
    throw error
  }
  const { parts, finishReason } = reader.end()
  yield* parts
  yield run.finish(finishReason)
}

/** One generation read as an answer. */
class ChatRun {
  readonly #logprobs: TokenLogprobs[] | null
  readonly #started = performance.now()
  #prefilled: number | null = null
  #reused: number | null = null
  #finish: GenerationResult | null = null

  constructor(
    private readonly model: Model,
    private readonly request: GenerationRequest,
    private readonly reader: AnswerReader,
    private readonly promptTokens: number
  ) {
    this.#logprobs = request.logprobs === undefined ? null : []
  }

  async *parts(): AsyncGenerator<ChatPart> {
    const { reader, promptTokens } = this
    for await (const part of this.model.generate(this.request)) {
      if (part.type === 'progress') {
        this.#reused = promptTokens - part.total
        yield part
      } else if (part.type === 'finish') this.#finish = part
      else if (part.id !== null) {
        this.#prefilled ??= performance.now()
        // no progress came: there was nothing to run
        this.#reused ??= promptTokens
        if (part.logprobs !== null) this.#logprobs?.push(part.logprobs)
        yield* reader.push(part.id)
        if (reader.ended && !reader.endTokenCame) break
      }
    }
  }

  finish(finishReason: ChatResult['finishReason']): ChatPart {
    const { reasoning, text, toolCalls, ids, reasoningTokens } = this.reader
    const now = performance.now()
    const prefilled = this.#prefilled === null ? now : this.#prefilled
    const finish = this.#finish
    return {
      type: 'finish',
      reasoning,
      text,
      toolCalls,
      message: messageOf(this.reader),
      finishReason,
      ids,
      logprobs: this.#logprobs,
      usage: {
        promptTokens: this.promptTokens,
        reusedTokens: this.#reused,
        completionTokens: ids.length,
        reasoningTokens
      },
      speculation: finish === null ? null : finish.speculation,
      timings: { prefillMs: prefilled - this.#started, decodeMs: now - prefilled }
    }
  }
}

const generationOf = (
  model: Model,
  { maxTokens, sampler, logprobs, signal, session, prefixCache, speculate }: ChatRequest,
  prompt: readonly number[]
): GenerationRequest => {
  const settings = { maxTokens, sampler, logprobs, signal, session, prefixCache, speculate }
  if (session === undefined) return { ...settings, ids: prompt }
  const { ids } = session
  if (session.model !== model) throw refusedField('session', 'the session belongs to another model')
  for (let i = 0; i < ids.length; i++) {
    if (ids[i] === prompt[i]) continue
    const message = `the session and the conversation part at token ${i}; start from another session`
    throw refusedField('session', message)
  }
  return { ...settings, ids: prompt.slice(ids.length) }
}

const messageOf = ({ reasoning, text, toolCalls }: AnswerReader): AssistantMessage => {
  const message = { role: 'assistant', content: text, reasoning_content: reasoning } as const
  if (toolCalls.length === 0) return message
  const calls = toolCalls.map(({ id, ...call }) => ({ id, type: 'function', function: call }) as const)
  return { ...message, tool_calls: calls }
}

const callsIn = (messages: readonly unknown[]): number =>
  messages.reduce<number>((sum, message) => {
    const calls = (message as { tool_calls?: unknown } | null)?.tool_calls
    return sum + (Array.isArray(calls) ? calls.length : 0)
  }, 0)
