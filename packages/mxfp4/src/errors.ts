import { CodedError } from '@k3/native-kit'

export type Mxfp4ErrorCode =
  | 'ERR_MXFP4_SCALE_NAN'
  | 'ERR_MXFP4_VALUE_NOT_FINITE'
  | 'ERR_MXFP4_SHAPE'
  | 'ERR_MXFP4_LAYOUT'
  | 'ERR_MXFP4_ACTIVATIONS'
  | 'ERR_MXFP4_MEMORY'

/** Where in a matrix: group `group` of row `row` covers columns 32 group .. 32 group + 31. */
export interface Place {
  readonly tensor: string
  readonly row: number
  readonly group: number
}

/** What is wrong with MXFP4 data; `at` is its place where there is one. */
export class Mxfp4Error extends CodedError<Mxfp4ErrorCode> {
  readonly at: Place | null

  constructor(code: Mxfp4ErrorCode, message: string, at: Place | null = null) {
    super(code, message)
    this.at = at
  }
}

/** Misuse by the programmer: a number or an array that does not fit. */
export const rangeError = (message: string): RangeError =>
  Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' })

/** ERR_MXFP4_MEMORY for what needs the scratch. */
export const noMemory = (what: string): Mxfp4Error =>
  new Mxfp4Error('ERR_MXFP4_MEMORY', `${what}: the system has no memory for the scratch; use smaller batches`)
