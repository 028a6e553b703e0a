import type { AssistantMessage, ChatRequest } from '@k3/engine/chat'
import { renderChat } from '@k3/tokenizer/xtml'

/** Whether the model thinks and how much; `max` is what it was made for. */
export type Thinking = 'off' | 'low' | 'high' | 'max'

export const THINKING: readonly string[] = ['off', 'low', 'high', 'max'] satisfies Thinking[]

/** What a conversation is made of; all of it is saved. */
export interface ConversationState {
  readonly system: string | null
  /** OpenAI-style tool objects; empty for none. */
  readonly tools: readonly unknown[]
  readonly thinking: Thinking
  readonly messages: readonly unknown[]
}

type RequestParts = Pick<ChatRequest, 'messages' | 'tools' | 'thinking' | 'effort'>

/** The turns so far, and what stands before them. */
export class Conversation {
  #state: ConversationState = { system: null, tools: [], thinking: 'max', messages: [] }

  get state(): ConversationState {
    return this.#state
  }

  /**
   * Replaces parts of it, all or nothing.
   * @throws XtmlError naming the message, tool or field that cannot be rendered
   */
  change(parts: Partial<ConversationState>): void {
    const state = { ...this.#state, ...parts }
    renderChat({ messages: messagesOf(state), tools: toolsOf(state) })
    this.#state = state
  }

  user(text: string): void {
    this.#add({ role: 'user', content: text })
  }

  answer(message: AssistantMessage): void {
    this.#add(message)
  }

  toolResult({ id, name }: { readonly id: string; readonly name: string }, content: string): void {
    this.#add({ role: 'tool', tool_call_id: id, name, content })
  }

  /** Takes back what was added since there were this many messages. */
  takeBack(length: number): void {
    this.#state = { ...this.#state, messages: this.#state.messages.slice(0, length) }
  }

  /** What `chat` needs to answer it. */
  request(): RequestParts {
    const { thinking } = this.#state
    const parts = { messages: messagesOf(this.#state), tools: toolsOf(this.#state) }
    return thinking === 'off' ? { ...parts, thinking: false } : { ...parts, thinking: true, effort: thinking }
  }

  #add(message: unknown): void {
    this.#state = { ...this.#state, messages: [...this.#state.messages, message] }
  }
}

const messagesOf = ({ system, messages }: ConversationState): readonly unknown[] =>
  system === null ? messages : [{ role: 'system', content: system }, ...messages]

const toolsOf = ({ tools }: ConversationState): readonly unknown[] | undefined =>
  tools.length === 0 ? undefined : tools
