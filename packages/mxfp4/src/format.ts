import { atLeast, type Weights, weightBytes } from '@k3/native-kit'
import { Mxfp4Error } from './errors.js'
import { native } from './native.js'
import { checkShape, groupSize, refuseNan, type Shape } from './shape.js'

/**
 * Every number of an MXFP4 matrix as f32. packed: U8 [rows, cols / 2], the low nibble is the even column; scales: U8
 * [rows, cols / 32]; out: f32 [rows, cols], fully overwritten, may be longer. Exact, except that a scale of 254 takes
 * magnitudes from 2 on beyond f32, to infinity. Source: OCP Microscaling Formats (MX) v1.0, E2M1 and E8M0.
 * @throws ERR_MXFP4_SCALE_NAN, ERR_MXFP4_SHAPE, ERR_MXFP4_LAYOUT, RangeError (ERR_OUT_OF_RANGE) for a short array
 */
export const decode = (packed: Weights, scales: Weights, shape: Shape, out: Float32Array): void => {
  checkShape(shape)
  const { rows, cols } = shape
  const groups = cols / groupSize
  const codes = weightBytes('packed', packed, (rows * cols) / 2)
  const exponents = weightBytes('scales', scales, rows * groups)
  atLeast('out', out, rows * cols)
  refuseNan('scales', exponents, rows, groups)
  native().decode(...codes, ...exponents, rows * groups, out)
}

/**
 * The MXFP4 matrix nearest to values f32 [rows, cols]; the two arrays are new and the caller's. Every group of 32 gets
 * the scale 2^(floor(log2(largest magnitude)) - 2), not below 2^-127, and its numbers divided by that are rounded to the
 * E2M1 grid 0, 0.5, 1, 1.5, 2, 3, 4, 6: ties to the even code, beyond 6 to 6, the sign kept. What `decode` gives comes
 * back unchanged in value. Source: OCP Microscaling Formats (MX) v1.0, conversion of a vector of scalars.
 * @throws ERR_MXFP4_VALUE_NOT_FINITE with the place, ERR_MXFP4_SHAPE, ERR_MXFP4_LAYOUT, TypeError
 * (ERR_INVALID_ARG_TYPE), RangeError (ERR_OUT_OF_RANGE) for a short array
 */
export const encode = (values: Float32Array, shape: Shape): { packed: Uint8Array; scales: Uint8Array } => {
  checkShape(shape)
  const { rows, cols } = shape
  atLeast('values', values, rows * cols)
  const packed = new Uint8Array((rows * cols) / 2)
  const scales = new Uint8Array((rows * cols) / groupSize)
  const found = native().encode(values, scales.length, packed, scales)
  if (found < 0) return { packed, scales }
  const row = Math.floor(found / cols)
  const col = found % cols
  const message = `values: finite numbers expected, found ${values[found]} in row ${row}, column ${col}`
  const at = { tensor: 'values', row, group: Math.floor(col / groupSize) }
  throw new Mxfp4Error('ERR_MXFP4_VALUE_NOT_FINITE', message, at)
}
