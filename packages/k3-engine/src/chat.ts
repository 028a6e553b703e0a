export { type Chat, chat } from './chat/chat.js'
export type { AssistantMessage, ChatPart, ChatResult, ChatToolCall } from './chat/chat-parts.js'
export type { ChatRequest, ResponseFormat, ToolChoice } from './chat/chat-request.js'
export { createAnswerConstraint } from './constraint/answer-constraint.js'
