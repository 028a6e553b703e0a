import type { ChatRequest } from '@k3/tokenizer/xtml'
import { UsageError } from '../usage-error.js'
import { Fields } from './fields.js'

/** One greedy output of the reference decoder. */
export interface DemoCase {
  readonly name: string
  /** a text to continue, or a conversation */
  readonly input: string | ChatRequest
  readonly promptIds: readonly number[]
  readonly maxTokens: number
  readonly outputIds: readonly number[]
  readonly outputText: string
  /** distance of the two highest logits at each output token */
  readonly margins: readonly number[]
  /** what the output of a conversation has to parse to; null when it is not stated */
  readonly parsed: unknown
}

/** Reads a file of the format of the demo model's expected.json. @throws UsageError for one that is not */
export const readDemoCases = (value: unknown, place: string): readonly DemoCase[] =>
  new Fields(value, place).list('cases').map((fields) => ({
    name: fields.text('name'),
    input: inputOf(fields, place),
    promptIds: fields.numbers('prompt_ids'),
    maxTokens: fields.number('max_new_tokens'),
    outputIds: fields.numbers('output_ids'),
    outputText: fields.text('output_text'),
    margins: fields.numbers('margins'),
    parsed: fields.has('parsed') ? fields.value('parsed') : null
  }))

const inputOf = (fields: Fields, place: string): string | ChatRequest => {
  const kind = fields.text('kind')
  if (kind === 'raw') return fields.text('text')
  if (kind !== 'chat') throw new UsageError(`${place}: kind is '${kind}', known are raw and chat`)
  return {
    messages: fields.array('messages'),
    tools: fields.value('tools') as ChatRequest['tools'],
    options: fields.value('options') as ChatRequest['options']
  }
}
