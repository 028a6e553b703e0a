import { K3Error, type K3ErrorCode } from './errors.js'

/**
 * Refuses members that are not in the list: a misspelt setting would otherwise have no effect and nobody would know.
 * @throws the given code, `field` being the first unknown member
 */
export const refuseUnknownFields = (
  given: object,
  known: readonly string[],
  code: K3ErrorCode,
  what: string
): void => {
  if (typeof given !== 'object' || given === null) {
    throw new K3Error(code, `${what} must be an object, got ${String(given)}`, { have: given, need: known })
  }
  const field = Object.keys(given).find((key) => !known.includes(key))
  if (field === undefined) return
  const message = `${what} has no field '${field}'; it has ${known.join(', ')}`
  throw new K3Error(code, message, { field, need: known })
}
