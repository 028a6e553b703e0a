/** The array itself when it has the length, otherwise a copy of at least twice the size, padded with `fill`. */
export const grown = (
  array: Int32Array<ArrayBuffer>,
  length: number,
  fill: number
): Int32Array<ArrayBuffer> => {
  if (array.length >= length) return array
  const larger = new Int32Array(Math.max(length, array.length * 2, 16)).fill(fill, array.length)
  larger.set(array)
  return larger
}

/** As `grown`, for counts and priorities that outlive 32 bits; the padding is 0. */
export const grownFloat = (array: Float64Array<ArrayBuffer>, length: number): Float64Array<ArrayBuffer> => {
  if (array.length >= length) return array
  const larger = new Float64Array(Math.max(length, array.length * 2, 16))
  larger.set(array)
  return larger
}
