/**
 * Zeros that start at the border of a cache line: no load of a whole register straddles two lines, which an array as the
 * engine places it costs up to twice the time. `floatsToBorder` is the addon's function of that name.
 */
export const alignedFloats = (
  length: number,
  floatsToBorder: (array: Float32Array) => number
): Float32Array => {
  const padded = new Float32Array(length + 15)
  const first = floatsToBorder(padded)
  return padded.subarray(first, first + length)
}
