import { alignedFloats } from '@k3/native-kit'
import { native } from './native.js'

const zeros = (length: number) => alignedFloats(length, native())

const copyOf = (from: Float32Array) => {
  const copy = zeros(from.length)
  copy.set(from)
  return copy
}

/**
 * What one sequence carries through one layer; zero at its start. A matrix of 2 MiB and more lies in a mapping of its own,
 * on huge pages where the system has them. Such a buffer stays: named in a transfer list it is copied or refused, by version
 * of Node.js.
 */
export class KdaState {
  /** f32 [heads, keys, values]: the matrix of each head, row-major by key channel */
  readonly recurrence: Float32Array
  /** f32 [3, taps - 1, heads * headDim]: the last inputs of the convolutions of q, k and v, oldest first */
  readonly tails: Float32Array

  /** Made by `kda.createState()`; or from arrays that were saved, which it then owns. `forward` checks their lengths. */
  constructor(recurrence: Float32Array, tails: Float32Array) {
    this.recurrence = recurrence
    this.tails = tails
  }

  /** Size in bytes: 4 heads · headDim · (headDim + 3 (taps - 1)). */
  get bytes(): number {
    return this.recurrence.byteLength + this.tails.byteLength
  }

  /** An independent copy. */
  copy(): KdaState {
    return new KdaState(copyOf(this.recurrence), copyOf(this.tails))
  }

  /** Takes over the contents of a state of the same shape. @throws RangeError (ERR_OUT_OF_RANGE) when the shape differs */
  restore(from: KdaState): void {
    if (from.recurrence.length !== this.recurrence.length || from.tails.length !== this.tails.length) {
      throw Object.assign(new RangeError('the states are of different shapes'), { code: 'ERR_OUT_OF_RANGE' })
    }
    this.recurrence.set(from.recurrence)
    this.tails.set(from.tails)
  }
}

/** A state of zeros, of arrays of these lengths. */
export const emptyState = (recurrenceLength: number, tailsLength: number): KdaState =>
  new KdaState(zeros(recurrenceLength), zeros(tailsLength))
