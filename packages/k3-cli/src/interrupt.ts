import { EXIT } from './exit-codes.js'

/** Work that Ctrl-C can stop. */
export interface Stoppable {
  readonly signal: AbortSignal
  /** The work has ended; Ctrl-C is as it was before. */
  release(): void
}

/** A signal that the first Ctrl-C aborts, so that what is there can be kept; the second one quits at once. */
export const stopOnInterrupt = (): Stoppable => {
  const controller = new AbortController()
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted)
    controller.abort(new Error('interrupted'))
  }
  process.on('SIGINT', interrupt)
  return { signal: controller.signal, release: () => void process.off('SIGINT', interrupt) }
}
