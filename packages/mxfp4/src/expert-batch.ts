import { count } from '@k3/native-kit'
import { rangeError } from './errors.js'

/**
 * `count` experts and the (token, expert) pairs they work on; arrays may be longer. bases: byte offset of each expert in
 * the region; starts: [count + 1] first pair of each expert, ascending; tokens: row of z of each pair, indexed by the
 * pair's number. Pairs starts[0] .. starts[count] - 1 are computed.
 */
export interface ExpertBatch {
  readonly count: number
  readonly bases: Float64Array
  readonly starts: Int32Array
  readonly tokens: Int32Array
}

/**
 * Rows of z the batch reads, and its pairs.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), RangeError (ERR_OUT_OF_RANGE)
 */
export const checkBatch = (batch: ExpertBatch, checkBase: (base: number) => void) => {
  const { bases, starts, tokens } = batch
  count('batch.count', batch.count, 0)
  if (!(bases instanceof Float64Array)) throw wrongType('batch.bases', 'Float64Array')
  if (!(starts instanceof Int32Array)) throw wrongType('batch.starts', 'Int32Array')
  if (bases.length < batch.count || starts.length <= batch.count)
    throw rangeError(`batch: ${batch.count} bases and one start more expected`)
  if (starts[0]! < 0) throw rangeError('batch.starts must not be negative')
  for (let e = 0; e < batch.count; e++) {
    checkBase(bases[e]!)
    if (starts[e + 1]! < starts[e]!)
      throw rangeError(`batch.starts must not descend, as they do at expert ${e}`)
  }
  const [first, end] = [starts[0]!, starts[batch.count]!]
  return { rows: 1 + largestIndex('batch.tokens', tokens, first, end), pairs: end - first }
}

/**
 * The largest of array[first .. end), -1 when there is none.
 * @throws TypeError (ERR_INVALID_ARG_TYPE), RangeError (ERR_OUT_OF_RANGE) when one is negative or the array too short
 */
export const largestIndex = (name: string, array: Int32Array, first: number, end: number): number => {
  if (!(array instanceof Int32Array)) throw wrongType(name, 'Int32Array')
  if (array.length < end) throw rangeError(`${name} must hold ${end} numbers, it has ${array.length}`)
  let most = -1
  for (let i = first; i < end; i++) {
    const value = array[i]!
    if (value < 0) throw rangeError(`${name}[${i}] must not be negative, got ${value}`)
    if (value > most) most = value
  }
  return most
}

const wrongType = (name: string, type: string): TypeError =>
  Object.assign(new TypeError(`${name} must be a ${type}`), { code: 'ERR_INVALID_ARG_TYPE' })
