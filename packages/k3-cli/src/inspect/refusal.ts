import { codeOf } from '../exit-codes.js'

/** Why something was refused, in plain data; a member is null when the fault has no such place. */
export interface Refusal {
  readonly code: string | null
  readonly file: string | null
  readonly tensor: string | null
  /** bytes from the start of the file */
  readonly offset: number | null
  readonly message: string
}

/** The place and the words of an error of the readers. */
export const refusal = (error: unknown): Refusal => {
  const { file, tensor, offset } = error as { file?: unknown; tensor?: unknown; offset?: unknown }
  return {
    code: codeOf(error),
    file: typeof file === 'string' ? file : null,
    tensor: typeof tensor === 'string' ? tensor : null,
    offset: typeof offset === 'number' ? offset : null,
    message: (error as Error).message
  }
}
