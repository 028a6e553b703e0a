/** Codes of {@link SynthWriteError}. */
export type SynthWriteErrorCode =
  | 'ERR_SYNTH_SPACE'
  | 'ERR_SYNTH_OCCUPIED'
  | 'ERR_SYNTH_SHARD'
  | 'ERR_SYNTH_WRITE'

/** A folder that cannot take the checkpoint; `file` is the path at fault. */
export class SynthWriteError extends Error {
  readonly code: SynthWriteErrorCode
  readonly file: string

  constructor(code: SynthWriteErrorCode, file: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'SynthWriteError'
    this.code = code
    this.file = file
  }
}
