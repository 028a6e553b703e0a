import type { Tokenizer } from '@k3/tokenizer'
import { encodeSegments, renderChat } from '@k3/tokenizer/xtml'
import { type ChatRequest, thinks } from './chat-request.js'

/**
 * The ids of the conversation with the beginning of the answer: `think` is open when the model thinks, else `response`.
 * Text of a message never becomes a marker, because every segment is encoded on its own.
 * @throws XtmlError naming the message, tool or field that cannot be rendered
 */
export const chatPrompt = (request: ChatRequest, tokenizer: Tokenizer): readonly number[] => {
  const { messages, tools, toolChoice } = request
  const thinking = thinks(request)
  const options = {
    thinking,
    ...(thinking ? effortOf(request) : {}),
    ...(typeof toolChoice === 'string' ? { tool_choice: toolChoice } : {}),
    ...formatOf(request)
  }
  return encodeSegments(renderChat({ messages, tools, options }), tokenizer)
}

const effortOf = ({ effort }: ChatRequest): object =>
  effort === undefined ? {} : { thinking_effort: effort }

const formatOf = ({ responseFormat: format }: ChatRequest): object => {
  if (format === undefined || format.type === 'text') return {}
  if (format.type === 'json_object') return { response_format: { type: 'json_object' } }
  return { response_format: { type: 'json_schema' }, response_schema: format.schema }
}
