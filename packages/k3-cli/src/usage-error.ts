/** A flag, an argument or an input is wrong, unknown or missing, or two of them contradict each other. */
export class UsageError extends Error {
  readonly code = 'ERR_USAGE'
  override readonly name = 'UsageError'
}
