/** Every refusal of the XTML entry, one code a cause. */
export type XtmlErrorCode =
  | 'ERR_XTML_JSON'
  | 'ERR_XTML_JSON_DEPTH'
  | 'ERR_XTML_VALUE'
  | 'ERR_XTML_REQUEST'
  | 'ERR_XTML_REVISION'
  | 'ERR_XTML_OPTION'
  | 'ERR_XTML_THINKING_EFFORT'
  | 'ERR_XTML_TOOL_CHOICE'
  | 'ERR_XTML_RESPONSE_FORMAT'
  | 'ERR_XTML_TOOLS'
  | 'ERR_XTML_MESSAGE'
  | 'ERR_XTML_ROLE'
  | 'ERR_XTML_CONTENT'
  | 'ERR_XTML_CALL'
  | 'ERR_XTML_ARGUMENTS'
  | 'ERR_XTML_TOOL_NAME'
  | 'ERR_XTML_IMAGE_SIZE'
  | 'ERR_XTML_IMAGE_BLOCK'
  | 'ERR_XTML_IMAGE_COUNT'
  | 'ERR_XTML_MARKER'
  | 'ERR_XTML_PARSER'

/**
 * Any refusal of this entry. `code` names the cause, `path` the place (`messages[2].content`; in JSON text
 * also the offset in UTF-16 units, `request, offset 17`), `message` says what was expected, what was found and what to do.
 */
export class XtmlError extends Error {
  override readonly name = 'XtmlError'
  readonly code: XtmlErrorCode
  readonly path: string

  constructor(code: XtmlErrorCode, path: string, text: string) {
    super(`${path}: ${text}`)
    this.code = code
    this.path = path
  }
}
