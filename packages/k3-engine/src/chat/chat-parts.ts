import type { SpeculationStatistics } from '../continuation.js'
import type { TokenLogprobs } from '../logprobs.js'
import type { PrefillProgress } from '../prefill.js'

/** A finished call of a declared tool. */
export interface ChatToolCall {
  /** Made here, `call_0` on; unique in a conversation whose ids all come from here. */
  readonly id: string
  readonly name: string
  /** JSON text of an object, with the literals that the model wrote. */
  readonly arguments: string
}

/** A step of a call. A dropped one was never closed: what was streamed of it is not in the result. */
export type ToolCallPart =
  | { readonly stage: 'start'; readonly index: number; readonly id: string; readonly name: string }
  | { readonly stage: 'arguments'; readonly index: number; readonly text: string }
  | ({ readonly stage: 'end'; readonly index: number } & ChatToolCall)
  | { readonly stage: 'dropped'; readonly index: number }

/** One event of a chat. The texts of a kind, joined, are those of the result. */
export type ChatPart =
  | PrefillProgress
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'text'; readonly text: string }
  | ({ readonly type: 'tool-call' } & ToolCallPart)
  | ({ readonly type: 'finish' } & ChatResult)

/** The answer as a message: append it to the conversation as it is, reasoning included. */
export interface AssistantMessage {
  readonly role: 'assistant'
  readonly content: string
  readonly reasoning_content: string
  readonly tool_calls?: readonly {
    readonly id: string
    readonly type: 'function'
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
}

/** The whole answer. */
export interface ChatResult {
  readonly reasoning: string
  readonly text: string
  readonly toolCalls: readonly ChatToolCall[]
  readonly message: AssistantMessage
  /**
   * `stop`: the end of the message or a stop text; `tool_calls`: it ended with calls; `length`: maxTokens or the context
   * is used up, also inside a call; `abort`, `error`: what came before is here, and the reason is thrown.
   */
  readonly finishReason: 'stop' | 'length' | 'tool_calls' | 'abort' | 'error'
  /** Generated ids, markers and the stop token included. */
  readonly ids: readonly number[]
  /** One entry for each id; null unless the request asked for them. */
  readonly logprobs: readonly TokenLogprobs[] | null
  /**
   * In tokens. Reasoning is part of the completion, without the markers that close it. Reused ones are part of the
   * prompt and did not have to run, because a session or a prefix cache had them; null when it ended before any ran.
   */
  readonly usage: {
    readonly promptTokens: number
    readonly reusedTokens: number | null
    readonly completionTokens: number
    readonly reasoningTokens: number
  }
  /** What speculation did; null unless the request asked for it and the answer ran to its end. */
  readonly speculation: SpeculationStatistics | null
  readonly timings: { readonly prefillMs: number; readonly decodeMs: number }
}
