import type { Tokenizer } from '@k3/tokenizer'
import { type AnswerRules, createAnswerConstraint } from '../constraint/answer-constraint.js'
import type { TokenConstraint } from '../interfaces.js'
import type { Model } from '../model.js'
import { type ChatRequest, forcesCall, thinks } from './chat-request.js'

/**
 * What a request demands of the answer, token by token; undefined when it demands nothing.
 * @throws ERR_K3_SCHEMA with the JSON pointer of what cannot be enforced
 */
export const chatConstraint = (
  model: Model,
  tokenizer: Tokenizer,
  request: ChatRequest
): TokenConstraint | undefined => {
  const answer = answerOf(request)
  if (answer === null) return undefined
  const { vocabSize, tokens } = model.config
  const vocabulary = { tokenizer, vocabSize, eos: tokens.eos }
  return createAnswerConstraint(vocabulary, { thinking: thinks(request), answer })
}

const answerOf = (request: ChatRequest): AnswerRules['answer'] | null => {
  const { tools = [], toolChoice, responseFormat: format } = request
  if (forcesCall(request)) {
    return { kind: 'calls', tools, only: typeof toolChoice === 'object' ? toolChoice.name : null }
  }
  if (format !== undefined && format.type !== 'text') {
    const schema = format.type === 'json_object' ? { type: 'object' } : format.schema
    return { kind: 'schema', schema, tools: toolChoice === 'none' ? [] : tools }
  }
  return toolChoice === 'none' ? { kind: 'prose' } : null
}
