import { CodedError } from '@k3/native-kit'

/** Codes of {@link SynthError}. */
export type SynthErrorCode =
  | 'ERR_SYNTH_PRESET'
  | 'ERR_SYNTH_FIELD'
  | 'ERR_SYNTH_VALUE'
  | 'ERR_SYNTH_GEOMETRY'
  | 'ERR_SYNTH_TENSOR'

/** A preset, field, value or tensor that the formula has no answer for; `subject` names it. */
export class SynthError extends CodedError<SynthErrorCode> {
  readonly subject: string

  constructor(code: SynthErrorCode, subject: string, message: string) {
    super(code, message)
    this.subject = subject
  }
}
