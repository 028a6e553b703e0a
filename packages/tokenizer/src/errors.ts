/** Every reason for which this package refuses its input. */
export type TokenizerErrorCode =
  | 'ERR_TOKENIZER_FILE'
  | 'ERR_TOKENIZER_LINE'
  | 'ERR_TOKENIZER_BASE64'
  | 'ERR_TOKENIZER_RANK'
  | 'ERR_TOKENIZER_DUPLICATE'
  | 'ERR_TOKENIZER_BYTES'
  | 'ERR_TOKENIZER_CONFIG'
  | 'ERR_TOKENIZER_SPECIAL_ID'
  | 'ERR_TOKENIZER_SPECIAL_NAME'
  | 'ERR_TOKENIZER_NOT_OFFICIAL'
  | 'ERR_TOKENIZER_ID'

/** Where the fault is; a member is absent when the fault has no such place. */
export interface TokenizerErrorPlace {
  readonly file?: string
  readonly line?: number // 1-based line of the ranks file
  readonly id?: number
  readonly cause?: unknown
}

/** Thrown for a vocabulary, a configuration or an id that cannot be used; `code` is stable. */
export class TokenizerError extends Error {
  override readonly name = 'TokenizerError'
  readonly code: TokenizerErrorCode
  readonly file: string | undefined
  readonly line: number | undefined
  readonly id: number | undefined

  constructor(code: TokenizerErrorCode, message: string, place: TokenizerErrorPlace = {}) {
    super(message, place.cause === undefined ? undefined : { cause: place.cause })
    this.code = code
    this.file = place.file
    this.line = place.line
    this.id = place.id
  }
}
