import { type Batch, UringError } from '@k3/uring'

/** Waits for a read whatever becomes of it; false when it failed, which changes nothing: it is not needed any more. */
export const settle = (reads: Pick<Batch, 'wait'>, index: number): boolean => {
  try {
    reads.wait(index)
    return true
  } catch {
    return false
  }
}

/**
 * Waits for a read. `tensorAt`: whose byte is the one at this position of the read.
 * @throws the error of the read, which then says whose bytes are missing, also as `tensor`
 */
export const waitFor = (
  reads: Pick<Batch, 'wait'>,
  index: number,
  tensorAt: (position: number) => string
): void => {
  try {
    reads.wait(index)
  } catch (error) {
    if (!(error instanceof UringError)) throw error
    const tensor = tensorAt(error.haveBytes ?? 0)
    error.message += `; it is of ${tensor}`
    throw Object.assign(error, { tensor })
  }
}
