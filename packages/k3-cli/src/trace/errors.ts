/** A trace file that is none, does not say enough, or cannot be written; `file` is the path at fault. */
export class TraceFileError extends Error {
  readonly code: 'ERR_TRACE_FILE' | 'ERR_TRACE_WRITE'
  readonly file: string
  /** Byte of the fault, where it has one. */
  readonly offset: number | undefined
  override readonly name = 'TraceFileError'

  constructor(
    code: TraceFileError['code'],
    file: string,
    message: string,
    { cause, offset }: { readonly cause?: unknown; readonly offset?: number | undefined } = {}
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.file = file
    this.offset = offset
  }
}
