/** What can go wrong in the cache; each code is explained in the package README. */
export type ExpertCacheErrorCode =
  | 'ERR_MOE_CACHE_TOO_FEW_SLOTS'
  | 'ERR_MOE_CACHE_UNION_TOO_LARGE'
  | 'ERR_MOE_CACHE_ALL_PINNED'
  | 'ERR_MOE_CACHE_IN_USE'
  | 'ERR_MOE_CACHE_PLAN_CLOSED'
  | 'ERR_MOE_CACHE_PLAN_EARLY'
  | 'ERR_MOE_CACHE_PLAN_LOST'
  | 'ERR_MOE_CACHE_POLICY'
  | 'ERR_MOE_CACHE_TRACE'

/** The numbers a fault is made of (slots, requested, pinned, layer, expert, offsetBytes, line …). */
export type FaultFields = Readonly<Record<string, number>>

/** A refusal by the cache or the trace reader. `code` is stable; `fields` holds the numbers in the message. */
export class ExpertCacheError extends Error {
  readonly code: ExpertCacheErrorCode
  readonly fields: FaultFields

  constructor(code: ExpertCacheErrorCode, message: string, fields: FaultFields = {}) {
    super(message)
    this.name = 'ExpertCacheError'
    this.code = code
    this.fields = fields
  }
}

/** Misuse by the programmer, as opposed to a state of the cache: a RangeError with a stable code. */
export const badArgument = (message: string): RangeError =>
  Object.assign(new RangeError(message), { code: 'ERR_MOE_CACHE_ARGUMENT' as const })

/** Refuses anything but an integer in [least, most]. */
export const checkInteger = (name: string, value: number, least: number, most: number): void => {
  if (Number.isInteger(value) && value >= least && value <= most) return
  throw badArgument(`${name} must be an integer from ${least} to ${most}, found ${String(value)}`)
}
