import { count } from '@k3/native-kit'
import { Mxfp4Error } from './errors.js'
import { native } from './native.js'

export const groupSize = 32

/**
 * The two published arrangements. compressed-tensors: packed [rows, cols / 2], scales [rows, cols / 32]. gpt-oss: blocks
 * [rows, cols / 32, 16], scales [rows, cols / 32]. Byte for byte they are the same.
 */
export type Layout = 'compressed-tensors' | 'gpt-oss'

/** An MXFP4 matrix [rows, cols], row-major. `layout` is what the file calls it and changes no byte. */
export interface Shape {
  readonly rows: number
  readonly cols: number
  readonly layout?: Layout
}

/**
 * Refuses a width that is not whole groups of 32.
 * @throws RangeError (ERR_OUT_OF_RANGE), ERR_MXFP4_SHAPE
 */
export const wholeGroups = (name: string, width: number): void => {
  count(name, width, 1)
  if (width % groupSize === 0) return
  const message = `${name} must be a multiple of 32, the numbers that share a scale; got ${width}`
  throw new Mxfp4Error('ERR_MXFP4_SHAPE', message)
}

/**
 * Refuses what is no MXFP4 matrix.
 * @throws RangeError (ERR_OUT_OF_RANGE), ERR_MXFP4_SHAPE, ERR_MXFP4_LAYOUT
 */
export const checkShape = ({ rows, cols, layout }: Shape): void => {
  count('rows', rows, 1)
  wholeGroups('cols', cols)
  if (layout === undefined || layout === 'compressed-tensors' || layout === 'gpt-oss') return
  const message =
    `layout '${layout}' is not known; 'compressed-tensors' and 'gpt-oss' are. Files that put codes i and i + 16 of a ` +
    'group into one byte (GGUF) must be rearranged first'
  throw new Mxfp4Error('ERR_MXFP4_LAYOUT', message)
}

/**
 * Refuses scales [rows, groups] with a byte 255, which is NaN in E8M0. `source`, `offset`: as weightBytes gives them.
 * @throws ERR_MXFP4_SCALE_NAN with the place of the first one
 */
export const refuseNan = (
  tensor: string,
  [source, offset]: [object, number],
  rows: number,
  groups: number
): void => {
  const found = native().firstNan(source, offset, rows * groups)
  if (found < 0) return
  const row = Math.floor(found / groups)
  const group = found % groups
  const message =
    `${tensor}: a scale below 255 expected, found 255 (NaN) in row ${row}, group ${group} (columns ${32 * group} to ` +
    `${32 * group + 31}); the bytes are damaged or are no MXFP4 scales`
  throw new Mxfp4Error('ERR_MXFP4_SCALE_NAN', message, { tensor, row, group })
}
