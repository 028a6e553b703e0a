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
 * @throws RangeError (ERR_OUT_OF_RANGE) when the region or the array is too short, or the array's buffer resizable;
 * TypeError (ERR_INVALID_ARG_TYPE) for what is neither
 */
export const weightBytes = (name: string, weights: Weights, bytes: number): [object, number] => {
  if (ArrayBuffer.isView(weights)) {
    if ('resizable' in weights.buffer && weights.buffer.resizable)
      throw refuse(`${name}: memory that stays put expected, the array's buffer is resizable`)
    if (weights.byteLength < bytes)
      throw refuse(`${name}: ${bytes} bytes expected, the array has ${weights.byteLength}`)
    return [weights, 0]
  }
  const { region, offset } = Object(weights) as { region: Region; offset: number }
  if (typeof region?.handle !== 'object') {
    const message = `${name}: a typed array expected, or { region, offset } with a region made by @k3/uring`
    throw Object.assign(new TypeError(message), { code: 'ERR_INVALID_ARG_TYPE' })
  }
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

/**
 * Refuses an output whose first `written` numbers share memory with the first `read` numbers of an input (4 bytes each):
 * an op would read what it has just written.
 * @throws RangeError (ERR_OUT_OF_RANGE)
 */
export const apart = (
  name: string,
  input: ArrayBufferView,
  read: number,
  out: ArrayBufferView,
  written: number
): void => {
  if (input.buffer !== out.buffer) return
  const disjoint =
    input.byteOffset + 4 * read <= out.byteOffset || out.byteOffset + 4 * written <= input.byteOffset
  if (!disjoint) throw refuse(`the output overlaps ${name}; give it memory of its own`)
}

/**
 * Refuses what is not a finite number above zero as a binary32.
 * @throws RangeError (ERR_OUT_OF_RANGE)
 */
export const aboveZero = (name: string, value: number): void => {
  const single = Math.fround(value)
  if (!(single > 0 && single < Infinity))
    throw refuse(`${name} must be above zero and finite as a binary32, got ${value}`)
}

/**
 * Refuses an array of another length: what is longer belongs to another shape.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), RangeError (ERR_OUT_OF_RANGE)
 */
export const exactly = (name: string, array: Float32Array, length: number): void => {
  atLeast(name, array, length)
  if (array.length > length) throw refuse(`${name} must hold ${length} numbers, it has ${array.length}`)
}
