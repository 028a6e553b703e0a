import { parseConfig } from '@k3/engine/checkpoint'
import { paddedBytes } from '@k3/uring'
import { InvalidArgumentError } from 'commander'
import { gigabytes, wholeNumber } from '../parse-option.js'
import { utf8 } from '../read-text.js'
import { readByName } from '../regular-file.js'
import { UsageError } from '../usage-error.js'

/** Flags that say how large the cache is. */
export interface CapacityFlags {
  readonly slots?: number[]
  readonly ram?: number[]
  readonly config?: string
}

/** A size of the cache; bytes are 0 when the size of an expert is not known. */
export interface Capacity {
  readonly slots: number
  readonly bytes: number
}

const list =
  (one: (text: string) => number) =>
  (text: string): number[] => {
    if (text === '') throw new InvalidArgumentError('Expected numbers separated by commas.')
    return text.split(',').map(one)
  }

/** Whole numbers separated by commas. */
export const slotList = list(wholeNumber(1))

/** Numbers of gigabytes separated by commas, as bytes. */
export const ramList = list(gigabytes)

const PAGE_BYTES = 4096
// MXFP4: half a byte a weight, and a scale byte for 32 of them.
const EXPERT_MATRICES = 3
const BYTES_PER_WEIGHT = 17 / 32

/** The sizes the flags name. expertBytes: memory of one expert, 0 when the trace does not say. @throws UsageError */
export const capacities = async (flags: CapacityFlags, expertBytes: number): Promise<Capacity[]> => {
  const { slots, ram, config } = flags
  if ((slots === undefined) === (ram === undefined)) {
    throw new UsageError('say how large the cache is, with --slots or with --ram')
  }
  const size = config === undefined ? expertBytes : await expertBytesOf(config)
  if (slots !== undefined) return slots.map((count) => ({ slots: count, bytes: count * size }))
  if (size === 0)
    throw new UsageError('the trace does not say how large an expert is: add --config, or give --slots')
  return ram!.map((bytes) => ({ slots: Math.floor(bytes / size), bytes }))
}

/** Memory of one expert, wherever its bytes begin in a page of the file. */
const expertBytesOf = async (file: string): Promise<number> => {
  const bytes = await readByName(file).catch((cause: Error) => {
    throw new UsageError(`${file} cannot be read: ${cause.message}`, { cause })
  })
  const { latentSize, intermediateSize } = parseConfig(utf8(bytes, file), file).moe
  return paddedBytes(PAGE_BYTES - 1, EXPERT_MATRICES * latentSize * intermediateSize * BYTES_PER_WEIGHT)
}
