import type { Batch } from '@k3/uring'

/** Waits for a read whatever becomes of it; false when it failed, which changes nothing: it is not needed any more. */
export const settle = (reads: Pick<Batch, 'wait'>, index: number): boolean => {
  try {
    reads.wait(index)
    return true
  } catch {
    return false
  }
}
