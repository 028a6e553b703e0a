/** Native memory made by @k3/uring. */
export interface Region {
  readonly handle: object
  readonly bytes: number
}

/** Where raw little-endian weights lie: in a region from byte `offset` on, or in a typed array (kept alive by the op). */
export type Weights = { readonly region: Region; readonly offset: number } | ArrayBufferView

const refuse = (message: string) => Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' })

/**
 * Splits weights into what C++ takes, [handle or typed array, offset], after checking that `bytes` bytes are there.
 * @throws RangeError (ERR_OUT_OF_RANGE) when the region or the array is too short
 */
export const weightBytes = (name: string, weights: Weights, bytes: number): [object, number] => {
  if (ArrayBuffer.isView(weights)) {
    if (weights.byteLength < bytes)
      throw refuse(`${name}: ${bytes} bytes expected, the array has ${weights.byteLength}`)
    return [weights, 0]
  }
  const { region, offset } = weights
  if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes > region.bytes) {
    throw refuse(
      `${name}: bytes ${offset} to ${offset + bytes} are not inside the region of ${region.bytes} bytes`
    )
  }
  return [region.handle, offset]
}

/**
 * Refuses an array that is shorter than `need` numbers, or not a Float32Array at all.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), RangeError (ERR_OUT_OF_RANGE)
 */
export const atLeast = (name: string, array: Float32Array, need: number): void => {
  if (!(array instanceof Float32Array)) {
    throw Object.assign(new TypeError(`${name} must be a Float32Array`), { code: 'ERR_INVALID_ARG_TYPE' })
  }
  if (array.length < need) throw refuse(`${name} must hold ${need} numbers, it has ${array.length}`)
}

/**
 * Refuses what is not a whole number of at least `low`.
 * @throws RangeError (ERR_OUT_OF_RANGE)
 */
export const count = (name: string, value: number, low: number): void => {
  if (!Number.isSafeInteger(value) || value < low)
    throw refuse(`${name} must be a whole number of at least ${low}, got ${value}`)
}
