// The product in double precision: the oracle of the tests, and its documentation.

/** The value of a bf16 number: the upper half of a binary32. */
export const bf16Value = (h: number): number => {
  const sign = h >> 15 ? -1 : 1
  const exponent = (h >> 7) & 0xff
  const fraction = h & 0x7f
  if (exponent === 0xff) return fraction ? NaN : sign * Infinity
  if (exponent === 0) return sign * fraction * 2 ** -133
  return sign * (128 + fraction) * 2 ** (exponent - 134)
}

/** out[t][r] = sum_c W[r][c] x[t][c]. weights: bf16 [rows, cols]; x: [tokens, cols]; out: [tokens, rows] */
export const multiply = (weights: Uint16Array, x: ArrayLike<number>, cols: number): Float64Array => {
  const rows = weights.length / cols
  const tokens = x.length / cols
  const out = new Float64Array(tokens * rows)
  for (let t = 0; t < tokens; t++)
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < cols; c++)
        out[t * rows + r]! += bf16Value(weights[r * cols + c]!) * x[t * cols + c]!
  return out
}
