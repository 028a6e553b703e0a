import { apart } from '@k3/native-kit'

const refuse = (message: string) => Object.assign(new RangeError(message), { code: 'ERR_OUT_OF_RANGE' })

/**
 * Refuses more than `most`.
 * @throws RangeError (ERR_OUT_OF_RANGE)
 */
export const atMost = (name: string, value: number, most: number): void => {
  if (value > most) throw refuse(`${name} must be at most ${most}, got ${value}`)
}

/**
 * As `apart` for an op that is safe in place: the output may also start where the input does.
 * @throws RangeError (ERR_OUT_OF_RANGE)
 */
export const apartOrSame = (name: string, input: Float32Array, out: Float32Array, length: number): void => {
  if (input.byteOffset !== out.byteOffset) apart(name, input, length, out, length)
}
