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
 * @throws what the read threw, as the cause of one that says whose bytes are missing, also as `tensor`
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
    const { code, message, file, offset, needBytes, haveBytes } = error
    const tensor = tensorAt(haveBytes ?? 0)
    // another one: the batch keeps its own, and throws it again to whoever else waits
    const named = new UringError(code, `${message}; it is of ${tensor}`)
    throw Object.assign(named, { file, offset, needBytes, haveBytes, tensor, cause: error })
  }
}
