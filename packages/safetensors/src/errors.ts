/** Every code of this package, one a rule. A code never changes its meaning; the README table says what to do. */
export const ERROR_CODES = [
  // length field
  'ERR_SAFETENSORS_LENGTH_TRUNCATED',
  'ERR_SAFETENSORS_HEADER_EMPTY',
  'ERR_SAFETENSORS_HEADER_TOO_LARGE',
  'ERR_SAFETENSORS_HEADER_TRUNCATED',
  // JSON text
  'ERR_SAFETENSORS_HEADER_START',
  'ERR_SAFETENSORS_HEADER_TRAILING',
  'ERR_SAFETENSORS_JSON_TRUNCATED',
  'ERR_SAFETENSORS_JSON_SYNTAX',
  'ERR_SAFETENSORS_JSON_STRING',
  'ERR_SAFETENSORS_JSON_DEPTH',
  'ERR_SAFETENSORS_UTF8',
  'ERR_SAFETENSORS_DUPLICATE_TENSOR',
  'ERR_SAFETENSORS_DUPLICATE_MEMBER',
  // one entry
  'ERR_SAFETENSORS_ENTRY_TYPE',
  'ERR_SAFETENSORS_MEMBER_MISSING',
  'ERR_SAFETENSORS_DTYPE_UNKNOWN',
  'ERR_SAFETENSORS_SHAPE_TYPE',
  'ERR_SAFETENSORS_DIM_NOT_INTEGER',
  'ERR_SAFETENSORS_DIM_NEGATIVE',
  'ERR_SAFETENSORS_OFFSETS_PAIR',
  'ERR_SAFETENSORS_OFFSET_NOT_INTEGER',
  'ERR_SAFETENSORS_OFFSET_NEGATIVE',
  'ERR_SAFETENSORS_INTEGER_TOO_LARGE',
  'ERR_SAFETENSORS_SHAPE_OVERFLOW',
  'ERR_SAFETENSORS_SUB_BYTE',
  'ERR_SAFETENSORS_METADATA_TYPE',
  'ERR_SAFETENSORS_METADATA_VALUE',
  // ranges
  'ERR_SAFETENSORS_RANGE_REVERSED',
  'ERR_SAFETENSORS_SIZE_MISMATCH',
  'ERR_SAFETENSORS_OVERLAP',
  'ERR_SAFETENSORS_GAP',
  'ERR_SAFETENSORS_TRAILING_DATA',
  'ERR_SAFETENSORS_DATA_TRUNCATED',
  'ERR_SAFETENSORS_NOT_HEADER_ONLY',
  // index and folder
  'ERR_SAFETENSORS_INDEX_TOO_LARGE',
  'ERR_SAFETENSORS_INDEX_TYPE',
  'ERR_SAFETENSORS_INDEX_NO_WEIGHT_MAP',
  'ERR_SAFETENSORS_INDEX_WEIGHT_MAP_TYPE',
  'ERR_SAFETENSORS_INDEX_SHARD_TYPE',
  'ERR_SAFETENSORS_INDEX_SHARD_NAME',
  'ERR_SAFETENSORS_INDEX_DUPLICATE',
  'ERR_SAFETENSORS_INDEX_AMBIGUOUS',
  'ERR_SAFETENSORS_INDEX_UNLISTED',
  'ERR_SAFETENSORS_TOTAL_SIZE',
  'ERR_SAFETENSORS_TOO_MANY_SHARDS',
  'ERR_SAFETENSORS_SHARD_MISSING',
  'ERR_SAFETENSORS_TENSOR_MISSING',
  'ERR_SAFETENSORS_TENSOR_MISPLACED',
  'ERR_SAFETENSORS_TENSOR_IN_TWO_SHARDS',
  'ERR_SAFETENSORS_STRAY_FILE',
  'ERR_SAFETENSORS_NO_FILES',
  // access
  'ERR_SAFETENSORS_IO',
  'ERR_SAFETENSORS_NOT_A_FILE',
  'ERR_SAFETENSORS_READ_EOF',
  'ERR_SAFETENSORS_READ_TOO_LARGE',
  'ERR_SAFETENSORS_TENSOR_NOT_FOUND',
  'ERR_SAFETENSORS_RESERVED_NAME',
  // HTTP
  'ERR_SAFETENSORS_HTTP_REQUEST',
  'ERR_SAFETENSORS_HTTP_STATUS',
  'ERR_SAFETENSORS_HTTP_NO_RANGE',
  'ERR_SAFETENSORS_HTTP_CONTENT_RANGE',
  'ERR_SAFETENSORS_HTTP_BODY_LENGTH',
  'ERR_SAFETENSORS_HTTP_CHANGED'
] as const

export type SafetensorsErrorCode = (typeof ERROR_CODES)[number]

/** Where a fault lies; `offset` counts bytes from the start of `file`. */
export interface Fault {
  file?: string | null
  tensor?: string | null
  offset?: number | null
  cause?: unknown
}

/** Escapes what a terminal would obey instead of show: control and direction characters. */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\u2028\u2029]/gu,
    (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`
  )
}

const SHOWN_NAME_LENGTH = 160

/** A name as it may stand in a message: quoted, escaped, and short even when the file is hostile. */
export function quote(name: string): string {
  const shown =
    name.length > SHOWN_NAME_LENGTH ? `${name.slice(0, SHOWN_NAME_LENGTH)}… (${name.length} units)` : name
  return printable(JSON.stringify(shown))
}

/** An argument that is of no use to a function, with the code Node.js has for it. */
export const wrongType = (message: string): TypeError =>
  Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_TYPE' })

/** An argument of the right type and an impossible value. */
export const outOfBounds = (message: string): RangeError =>
  Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' })

const SHOWN_LIST_LENGTH = 12

/** The first names of a list and how many more there are. */
export function quoteList(names: readonly string[]): string {
  const more = names.length - SHOWN_LIST_LENGTH
  return names.slice(0, SHOWN_LIST_LENGTH).map(quote).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/**
 * A file, folder or server broke a rule of the format, or could not be read.
 * `code` is stable; `file`, `tensor` and `offset` (bytes from the start of the file) are null where they mean nothing.
 */
export class SafetensorsError extends Error {
  override readonly name = 'SafetensorsError'
  readonly code: SafetensorsErrorCode
  readonly file: string | null
  readonly tensor: string | null
  readonly offset: number | null

  constructor(code: SafetensorsErrorCode, message: string, fault: Fault = {}) {
    const { file = null, tensor = null, offset = null } = fault
    const place = [
      file === null ? '' : `file ${quote(file)}`,
      tensor === null ? '' : `tensor ${quote(tensor)}`,
      offset === null ? '' : `byte ${offset}`
    ].filter((part) => part !== '')
    super(
      place.length === 0 ? message : `${message} (${place.join(', ')})`,
      fault.cause === undefined ? undefined : { cause: fault.cause }
    )
    this.code = code
    this.file = file
    this.tensor = tensor
    this.offset = offset
  }
}
