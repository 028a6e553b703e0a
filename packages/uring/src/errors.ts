import { CodedError } from '@k3/native-kit'

export type UringErrorCode =
  | 'ERR_URING_OPEN'
  | 'ERR_URING_NOT_A_FILE'
  | 'ERR_URING_BACKEND'
  | 'ERR_URING_DIRECT'
  | 'ERR_URING_RESOURCES'
  | 'ERR_URING_EOF'
  | 'ERR_URING_READ'
  | 'ERR_URING_GIVEN_UP'
  | 'ERR_URING_CLOSED'
  | 'ERR_URING_MEMORY'
  | 'ERR_URING_VIEW'
  | 'ERR_URING_REGION_CLOSED'
  | 'ERR_URING_REGION_BUSY'
  | 'ERR_URING_CHANGED'

/** Where a fault lies. `offset`: first byte asked for; `needBytes`: how many; `haveBytes`: how many came before the fault. */
export interface UringFault {
  readonly file?: string
  readonly offset?: number
  readonly needBytes?: number
  readonly haveBytes?: number
}

/** Every refusal and failed read of this package; the fault's place is in `file`, `offset`, `needBytes`, `haveBytes`. */
export class UringError extends CodedError<UringErrorCode> {
  readonly file: string | undefined
  readonly offset: number | undefined
  readonly needBytes: number | undefined
  readonly haveBytes: number | undefined

  constructor(code: UringErrorCode, message: string, fault: UringFault = {}) {
    super(code, message)
    this.file = fault.file
    this.offset = fault.offset
    this.needBytes = fault.needBytes
    this.haveBytes = fault.haveBytes
  }
}

/** Misuse by the programmer. */
export const outOfRange = (message: string): RangeError =>
  Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' })
