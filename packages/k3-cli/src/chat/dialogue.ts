import { rm } from 'node:fs/promises'
import type { Model } from '@k3/engine'
import { type ChatPart, type ChatRequest, type ChatResult, chat } from '@k3/engine/chat'
import { PrefixCache, type Session } from '@k3/engine/sessions'
import { encodeSegments, renderChat } from '@k3/tokenizer/xtml'
import type { ChosenSampler } from '../sampling.js'
import { requireTokenizer } from '../tokenizer-of.js'
import { checkDestination, readChat, sessionFile, writeChat } from './chat-file.js'
import { Conversation } from './conversation.js'
import { Statistics } from './statistics.js'

/** Settings of a `Dialogue`. */
export interface DialogueSettings {
  readonly sampling: ChosenSampler
  readonly maxTokens: number
  /** Memory for what keeps earlier turns from running again, in bytes. */
  readonly prefixCacheBytes: number
  /** How many tokens to draft; undefined for none. */
  readonly speculate: ChatRequest['speculate']
}

/** What became of a turn. */
export interface Answered {
  readonly result: ChatResult
  /** The sequence was too long to be kept: the next turn runs all of it again. */
  readonly isForgotten: boolean
}

/** A conversation with a model, and the states that let it go on where it was. */
export class Dialogue {
  readonly model: Model
  readonly settings: DialogueSettings
  readonly conversation = new Conversation()
  readonly statistics = new Statistics()
  readonly prefixCache: PrefixCache

  constructor(model: Model, settings: DialogueSettings) {
    this.model = model
    this.settings = settings
    this.prefixCache = new PrefixCache(model, { maxBytes: settings.prefixCacheBytes })
  }

  /** Answers the conversation as it stands, and adds the answer to it unless there is none. */
  async answer(signal: AbortSignal, show: (part: ChatPart) => void): Promise<Answered> {
    const { prefixCache, settings } = this
    const { maxTokens, speculate } = settings
    const { sampler } = settings.sampling
    const request = { ...this.conversation.request(), maxTokens, sampler, prefixCache, speculate, signal }
    let result: ChatResult | null = null
    for await (const part of chat(this.model, { ...request, stopOnAbort: true })) {
      show(part)
      if (part.type === 'finish') result = part
    }
    if (result === null) throw new Error('the answer ended without its last part')
    const { promptTokens } = result.usage
    this.statistics.add(result)
    if (result.ids.length > 0) this.conversation.answer(messageOf(result))
    return { result, isForgotten: Math.max(0, ...prefixCache.positions) < promptTokens }
  }

  /**
   * Saves the conversation as `file`, and the state of its sequence beside it.
   * @returns tokens of the sequence; 0 when there is no state to save
   * @throws ChatFileError, ERR_K3_SESSION_WRITE
   */
  async save(file: string): Promise<number> {
    await checkDestination(file)
    await using session = this.prefixCache.open(this.#ids())
    const sessionTokens = session.position
    // the session first: one that is newer than its conversation is recognised by its length and costs nothing
    if (sessionTokens > 0) await session.save(sessionFile(file))
    await writeChat(file, { state: this.conversation.state, sessionTokens })
    if (sessionTokens === 0) await rm(sessionFile(file), { force: true })
    return sessionTokens
  }

  /**
   * Replaces the conversation with a saved one, all or nothing.
   * @returns tokens that need not run again, of those the file speaks of
   * @throws ChatFileError, XtmlError, ERR_K3_SESSION_* when the file beside it is damaged or of another model
   */
  async load(file: string): Promise<{ readonly kept: number; readonly saved: number }> {
    const { state, sessionTokens } = await readChat(file)
    const session = sessionTokens === 0 ? null : await this.#loadSession(file)
    this.conversation.change(state)
    this.prefixCache.clear()
    if (session === null || session.position !== sessionTokens) return { kept: 0, saved: sessionTokens }
    this.prefixCache.keep(session)
    await session[Symbol.asyncDispose]()
    await using known = this.prefixCache.open(this.#ids())
    return { kept: known.position, saved: sessionTokens }
  }

  /** Forgets the turns; what stands before them stays. */
  reset(): void {
    this.conversation.takeBack(0)
    this.prefixCache.clear()
  }

  async #loadSession(file: string): Promise<Session | null> {
    try {
      return await this.model.loadSession(sessionFile(file))
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  /** The tokens of the conversation up to where the next turn begins. */
  #ids(): readonly number[] {
    const { messages, tools, thinking, effort } = this.conversation.request()
    const options = { thinking, thinking_effort: effort, add_generation_prompt: false }
    return encodeSegments(renderChat({ messages, tools, options }), requireTokenizer(this.model))
  }
}

/** The message to remember. Calls of an answer that was stopped are not made, so nobody owes their results. */
const messageOf = ({ message, finishReason }: ChatResult): ChatResult['message'] => {
  if (finishReason !== 'abort') return message
  const { tool_calls: _, ...rest } = message
  return rest
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT'
