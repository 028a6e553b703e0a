/** The channel that the prompt left open: `think` with thinking on, `response` without, null for neither. */
export type OpenChannel = 'think' | 'response' | null

/** One step of a generated message. The texts of a kind, joined, are what the final output holds. */
export type OutputEvent =
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'text'; readonly text: string }
  /** A call begins; `index` counts from 0 over the calls begun. */
  | { readonly type: 'tool-call-start'; readonly index: number; readonly name: string }
  /** The next piece of the JSON text of the arguments. */
  | { readonly type: 'tool-call-arguments'; readonly index: number; readonly text: string }
  | {
      readonly type: 'tool-call-end'
      readonly index: number
      readonly name: string
      readonly arguments: string
    }
  /** A call that began was never closed: take it back, it is not in the final output. */
  | { readonly type: 'tool-call-dropped'; readonly index: number }
  /** The message is complete; whatever follows is ignored. */
  | { readonly type: 'done' }

/** A generated message, in the field names of the OpenAI API. Ids of calls are the server's to choose. */
export interface ParsedOutput {
  readonly reasoning: string
  readonly content: string
  /** Closed calls in order; `arguments` is JSON text with the literals of the model. */
  readonly tool_calls: readonly { readonly name: string; readonly arguments: string }[]
  /** Whether the model closed its message. */
  readonly complete: boolean
  /** `length` when the output ends inside a call or before its message does, `tool_calls` after a closed call. */
  readonly finish_reason: 'stop' | 'length' | 'tool_calls'
  /** The name of the call inside which the output ends; it is not among `tool_calls`. */
  readonly truncated_call: string | null
}

/** What parsing asks of a tokenizer. */
export interface OutputTokenizer {
  readonly specials: ReadonlyMap<string, number>
  stream(): { push(id: number): string; flush(): string }
}
