/** A saved chat that is none, or cannot be written; `file` is the path at fault. */
export class ChatFileError extends Error {
  readonly code: 'ERR_CHAT_FILE' | 'ERR_CHAT_WRITE'
  readonly file: string
  override readonly name = 'ChatFileError'

  constructor(code: ChatFileError['code'], file: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.file = file
  }
}
