import { count, type Weights, weightBytes } from '@k3/native-kit'
import { native } from './native.js'

/**
 * The first `length` bf16 numbers of `weights` as f32, exactly. The array is new and the caller's.
 * @throws RangeError (ERR_OUT_OF_RANGE) when the weights are too short, TypeError (ERR_INVALID_ARG_TYPE) when they are neither
 * an array nor in a region
 */
export const widen = (weights: Weights, length: number): Float32Array => {
  count('length', length, 0)
  const [source, offset] = weightBytes('weights', weights, 2 * length)
  const out = new Float32Array(length)
  native().widen(source, offset, out)
  return out
}
