import { atLeast } from '@k3/native-kit'

/**
 * The key weight of a residual mix: the gain of its norm times its projection, f32 [dim] each, rounded once. The result
 * is new and the caller's. dim is the length of `gain`.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), RangeError (ERR_OUT_OF_RANGE) when `projection` is shorter than `gain`
 */
export const foldKeyWeight = (gain: Float32Array, projection: Float32Array): Float32Array => {
  atLeast('gain', gain, 0)
  atLeast('projection', projection, gain.length)
  return gain.map((g, i) => g * projection[i]!)
}
