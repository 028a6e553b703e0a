import { EXIT } from './exit-codes.js'

/** A signal that the first Ctrl-C aborts, so that what is there can be kept; the second one quits at once. */
export const stopOnInterrupt = (): { readonly signal: AbortSignal; release(): void } => {
  const controller = new AbortController()
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted)
    controller.abort(new Error('interrupted'))
  }
  process.on('SIGINT', interrupt)
  return { signal: controller.signal, release: () => void process.off('SIGINT', interrupt) }
}
