import { existsSync } from 'node:fs'
import { codeOf } from '../exit-codes.js'
import { utf8 } from '../read-text.js'
import { readByName } from '../regular-file.js'
import { writeWhole } from '../write-whole.js'
import { type ConversationState, THINKING, type Thinking } from './conversation.js'
import { ChatFileError } from './errors.js'

const FORMAT = 'k3-chat'
const VERSION = 1
const FIELDS = ['format', 'version', 'system', 'tools', 'thinking', 'messages', 'session_tokens']

/** A conversation as it is saved. */
export interface SavedChat {
  readonly state: ConversationState
  /** Tokens of the session in the file beside it; 0 when there is none. */
  readonly sessionTokens: number
}

/** Where the session of a saved chat is. */
export const sessionFile = (file: string): string => `${file}.session`

/**
 * @throws ChatFileError ERR_CHAT_FILE when it cannot be read, is no saved chat, or one of another version
 */
export const readChat = async (file: string): Promise<SavedChat> => {
  const refuse = (message: string, cause?: unknown) =>
    new ChatFileError('ERR_CHAT_FILE', file, `${file} ${message}`, cause)
  const bytes = await readByName(file).catch((cause: Error) => {
    throw refuse(`cannot be read: ${cause.message}`, cause)
  })
  let value: unknown
  try {
    value = JSON.parse(utf8(bytes, file))
  } catch (cause) {
    throw refuse('is no saved chat: it is not JSON', cause)
  }
  if (!isObject(value) || value.format !== FORMAT) throw refuse(`is no saved chat: format is not "${FORMAT}"`)
  if (value.version !== VERSION) {
    throw refuse(`has version ${String(value.version)} of the format; this program reads ${VERSION}`)
  }
  const unknown = Object.keys(value).find((key) => !FIELDS.includes(key))
  if (unknown !== undefined) throw refuse(`has a field "${unknown}", which version ${VERSION} does not have`)
  const { system, tools, thinking, messages, session_tokens: sessionTokens } = value
  if (system !== null && typeof system !== 'string')
    throw refuse('has a "system" that is neither text nor null')
  if (!Array.isArray(tools)) throw refuse('has "tools" that are no list')
  if (!isThinking(thinking)) throw refuse(`has a "thinking" that is none of ${THINKING.join(', ')}`)
  if (!Array.isArray(messages)) throw refuse('has "messages" that are no list')
  if (!isCount(sessionTokens)) throw refuse('has a "session_tokens" that is no whole number')
  return { state: { system, tools, thinking, messages }, sessionTokens }
}

/**
 * Refuses to save over anything but a saved chat.
 * @throws ChatFileError as `readChat`, when there is a file
 */
export const checkDestination = async (file: string): Promise<void> => {
  if (existsSync(file)) {
    await readChat(file)
    return
  }
  const session = sessionFile(file)
  if (!existsSync(session)) return
  throw new ChatFileError(
    'ERR_CHAT_FILE',
    session,
    `${session} is there without ${file}; choose another name`
  )
}

/**
 * Writes the conversation so that at every moment the file is the old one or the new one, whole.
 * @throws ChatFileError ERR_CHAT_WRITE, the old file being unchanged
 */
export const writeChat = async (file: string, { state, sessionTokens }: SavedChat): Promise<void> => {
  const saved = { format: FORMAT, version: VERSION, ...state, session_tokens: sessionTokens }
  try {
    await writeWhole(file, `${JSON.stringify(saved, null, 2)}\n`, 0o600)
  } catch (cause) {
    const reason = codeOf(cause) === null ? String(cause) : (cause as Error).message
    throw new ChatFileError('ERR_CHAT_WRITE', file, `the chat could not be saved: ${reason}`, cause)
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isThinking = (value: unknown): value is Thinking =>
  typeof value === 'string' && THINKING.includes(value)

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
