/** The equations of this package in double precision, one number at a time: the oracle of the tests. */

const grid = [0, 0.5, 1, 1.5, 2, 3, 4, 6]

/** Column `col` of a row of MXFP4: E2M1 code value times 2^(E8M0 byte - 127). */
export const weightAt = (
  packed: Uint8Array,
  scales: Uint8Array,
  cols: number,
  row: number,
  col: number
): number => {
  const byte = packed[(row * cols + col) >> 1]!
  const code = col % 2 === 0 ? byte & 15 : byte >> 4
  const magnitude = grid[code & 7]! * 2 ** (scales[row * (cols / 32) + (col >> 5)]! - 127)
  return code & 8 ? -magnitude : magnitude
}

/** packed: U8 [rows, cols / 2]; scales: U8 [rows, cols / 32] */
export interface ReferenceMatrix {
  readonly packed: Uint8Array
  readonly scales: Uint8Array
  readonly rows: number
  readonly cols: number
}

/**
 * x as int8 activations have it: the numbers of each 32 neighbours, divided by a 127th of their largest magnitude, rounded
 * to integers with ties to even, times that again. Below a largest magnitude of 2^-100 they are zero.
 */
export const inEightBits = (x: ArrayLike<number>): Float64Array => {
  const rounded = new Float64Array(x.length)
  for (let first = 0; first < x.length; first += 32) {
    let most = 0
    for (let c = first; c < first + 32; c++) most = Math.max(most, Math.abs(x[c]!))
    const step = most < 2 ** -100 ? 0 : most / 127
    for (let c = first; c < first + 32; c++) rounded[c] = step === 0 ? 0 : step * toEven(x[c]! / step)
  }
  return rounded
}

const toEven = (value: number): number => {
  const down = Math.floor(value)
  const rest = value - down
  return rest > 0.5 || (rest === 0.5 && down % 2 !== 0) ? down + 1 : down
}

/** y[r] = sum_c W[r, c] x[c] */
export const matvecExact = (w: ReferenceMatrix, x: ArrayLike<number>): Float64Array =>
  Float64Array.from({ length: w.rows }, (_, row) => {
    let sum = 0
    for (let col = 0; col < w.cols; col++) sum += weightAt(w.packed, w.scales, w.cols, row, col) * x[col]!
    return sum
  })

/** beta tanh(g / beta) sigmoid(g) linearBeta tanh(u / linearBeta) */
export const situExact = (gate: number, up: number, beta: number, linearBeta: number): number =>
  ((beta * Math.tanh(gate / beta)) / (1 + Math.exp(-gate))) * linearBeta * Math.tanh(up / linearBeta)

/** w2 situ(w1 z, w3 z) */
export const expert = (
  weights: readonly [w1: ReferenceMatrix, w2: ReferenceMatrix, w3: ReferenceMatrix],
  z: ArrayLike<number>,
  beta: number,
  linearBeta: number
): Float64Array => {
  const [w1, w2, w3] = weights
  const gate = matvecExact(w1, z)
  const up = matvecExact(w3, z)
  return matvecExact(
    w2,
    gate.map((g, i) => situExact(g, up[i]!, beta, linearBeta))
  )
}
