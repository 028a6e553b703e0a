/** A flag, an argument or an input is wrong, or two of them contradict each other. */
export class UsageError extends Error {
  readonly code = 'ERR_USAGE'
  override readonly name = 'UsageError'
}
