import { availableParallelism } from 'node:os'
import { TaskPoolError } from './errors.js'
import { native } from './native.js'

const maxThreads = 1024 // the largest machine of one socket pair has fewer; a larger number is a typing error
const maxSpinMicros = 1_000_000
const defaultSpinMicros = 50 // longer than the gap between two ops of one token, shorter than a time slice

/** `threads`: parts of every run, the calling thread included. `spinMicros`: how long an idle thread spins before it sleeps. */
export interface PoolOptions {
  readonly threads: number
  readonly spinMicros?: number
}

/** Fork-join threads that several addons share through `handle`. */
export interface TaskPool {
  readonly threads: number
  /** A type-tagged External with the C struct `K3Pool`; what an op takes as `pool: { handle }`. */
  readonly handle: object
  /**
   * Waits for a run in progress and ends the threads; an op that runs later throws ERR_TASK_POOL_CLOSED and computes
   * nothing. A second call does nothing.
   */
  close(): void
  [Symbol.dispose](): void
}

const inRange = (name: string, value: number, low: number, high: number) => {
  if (Number.isSafeInteger(value) && value >= low && value <= high) return
  const message = `${name} must be a whole number from ${low} to ${high}, got ${value}`
  throw Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' })
}

/**
 * Starts a pool of `threads - 1` threads; the thread that runs an op is the remaining one. Idle threads spin for
 * `spinMicros` (50, or 0 when the pool has more threads than there are CPUs), then sleep. The caller owns the pool.
 * @throws RangeError (ERR_OUT_OF_RANGE) for threads outside 1 to 1024 or a spin outside 0 to 1,000,000 µs,
 * ERR_TASK_POOL_THREADS when the system refuses a thread (none is left behind)
 */
export const createPool = ({ threads, spinMicros }: PoolOptions): TaskPool => {
  inRange('threads', threads, 1, maxThreads)
  const spin = spinMicros === undefined ? spinFor(threads) : spinMicros
  inRange('spinMicros', spin, 0, maxSpinMicros)
  const handle = native().create(threads, spin * 1000)
  if (typeof handle === 'number') throw new TaskPoolError(threads, handle)
  const close = () => native().close(handle)
  return { threads, handle, close, [Symbol.dispose]: close }
}

const spinFor = (threads: number) => (threads > availableParallelism() ? 0 : defaultSpinMicros)
