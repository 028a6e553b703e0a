import { count } from '@k3/native-kit'
import { outOfRange } from './errors.js'

export const pageBytes = 4096

/**
 * One read: file bytes [offset, offset + length) land at region bytes [at + offset % 4096, …), and nothing outside
 * [at, at + paddedBytes(offset, length)) is touched. `file` is an index into the reader's paths; `at` is a multiple of
 * 4096. Reads in flight must not share target pages.
 */
export interface Read {
  readonly file: number
  readonly offset: number
  readonly length: number
  readonly region: { readonly handle: object; readonly bytes: number }
  readonly at: number
}

/**
 * Region bytes a read needs from `at` on: whole pages of 4096 bytes around it.
 * @throws RangeError (ERR_OUT_OF_RANGE) for a negative or fractional number
 */
export const paddedBytes = (offset: number, length: number): number => {
  count('offset', offset, 0)
  count('length', length, 0)
  return Math.ceil(((offset % pageBytes) + length) / pageBytes) * pageBytes
}

/** file, offset, length and at of each read in turn. */
export type ReadNumbers = Float64Array
export const readNumbers = 4

/** The reads as C++ takes them, four numbers each. */
export const toNumbers = (reads: readonly Read[]): ReadNumbers => {
  const numbers = new Float64Array(readNumbers * reads.length)
  for (let i = 0; i < reads.length; i++) {
    const { file, offset, length, at } = reads[i]!
    numbers.set([file, offset, length, at], readNumbers * i)
  }
  return numbers
}

/** @throws RangeError (ERR_OUT_OF_RANGE) naming the read */
export const checkReads = (reads: readonly Read[], files: number): void => {
  if (reads.length === 0) throw outOfRange('a batch has at least one read')
  for (let i = 0; i < reads.length; i++) {
    const { file, offset, length, region, at } = reads[i]!
    count(`reads[${i}].file`, file, 0)
    count(`reads[${i}].offset`, offset, 0)
    count(`reads[${i}].length`, length, 1)
    count(`reads[${i}].at`, at, 0)
    if (file >= files) throw outOfRange(`reads[${i}].file is ${file}, the reader has ${files} files`)
    if (!Number.isSafeInteger(offset + length + pageBytes))
      throw outOfRange(`reads[${i}] ends beyond byte 2^53`)
    if (at % pageBytes !== 0) throw outOfRange(`reads[${i}].at must be a multiple of ${pageBytes}, got ${at}`)
    const end = at + paddedBytes(offset, length)
    if (end > region.bytes) {
      const message = `reads[${i}] touches bytes ${at} to ${end} of a region of ${region.bytes} bytes; paddedBytes() says how many a read needs`
      throw outOfRange(message)
    }
  }
  refuseSharedPages(reads)
}

const refuseSharedPages = (reads: readonly Read[]): void => {
  const ends = new Map<object, { index: number; from: number; to: number }[]>()
  for (let index = 0; index < reads.length; index++) {
    const { region, at, offset, length } = reads[index]!
    const span = { index, from: at, to: at + paddedBytes(offset, length) }
    const spans = ends.get(region.handle)
    if (spans) spans.push(span)
    else ends.set(region.handle, [span])
  }
  for (const spans of ends.values()) {
    spans.sort((a, b) => a.from - b.from)
    for (let i = 1; i < spans.length; i++) {
      if (spans[i]!.from < spans[i - 1]!.to)
        throw outOfRange(`reads[${spans[i - 1]!.index}] and reads[${spans[i]!.index}] share target pages`)
    }
  }
}
