import { RAM_PRESETS, type Ram } from '@k3/engine/memory'
import { InvalidArgumentError } from 'commander'

/** A whole number of at least `low`. */
export const wholeNumber =
  (low: number) =>
  (text: string): number => {
    const value = Number(text)
    if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= low) return value
    throw new InvalidArgumentError(`Expected a whole number of at least ${low}.`)
  }

const MAX_THREADS = 1024 // what @k3/task-pool can start

/** A path. An empty one, as an unset variable of a shell gives it, would mean the current folder. */
export const filePath = (text: string): string => {
  if (text !== '') return text
  throw new InvalidArgumentError('Expected a path.')
}

/** A number of threads. */
export const threadCount = (text: string): number => {
  const count = wholeNumber(1)(text)
  if (count <= MAX_THREADS) return count
  throw new InvalidArgumentError(`Expected at most ${MAX_THREADS} threads.`)
}

const MAX_DRAFTS = 32 // what the engine verifies in one pass

/** How many tokens to draft: a number, or what measured acceptance decides. */
export const draftLength = (text: string): number | 'auto' => {
  if (text === 'auto') return text
  const length = Number(text)
  if (/^\d+$/.test(text) && length >= 1 && length <= MAX_DRAFTS) return length
  throw new InvalidArgumentError(`Expected auto or a whole number in 1 ... ${MAX_DRAFTS}.`)
}

// A byte a second, and more than anything reads: between them a time is a number of seconds.
const LEAST_SPEED = 1e-9
const MOST_SPEED = 1e9

/** A speed in GB/s. */
export const gigabytesPerSecond = (text: string): number => {
  const speed = decimal(text)
  if (speed >= LEAST_SPEED && speed <= MOST_SPEED) return speed
  throw new InvalidArgumentError(`Expected a number of GB/s from ${LEAST_SPEED} to ${MOST_SPEED}.`)
}

/** A finite number in decimal digits, like 0.7 or 1e-3. */
export const decimal = (text: string): number => {
  const value = Number(text)
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(value)) return value
  throw new InvalidArgumentError('Expected a decimal number.')
}

/** An amount of memory in GB (10^9 bytes), as bytes. */
export const gigabytes = (text: string): number => {
  const bytes = Math.round(decimal(text) * 1e9)
  if (Number.isSafeInteger(bytes) && bytes >= 0) return bytes
  throw new InvalidArgumentError('Expected a number of gigabytes.')
}

const UNITS = { '': 1e9, gb: 1e9, gib: 2 ** 30, mb: 1e6, mib: 2 ** 20 } as const

/** A memory budget: a size like 8GB, 7.5GiB or 500MB (a bare number is GB), or a name. */
export const ramSize = (text: string): Ram => {
  if (text === 'auto' || text === 'max' || Object.hasOwn(RAM_PRESETS, text)) return text as Ram
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*(|gb|gib|mb|mib)$/i.exec(text) ?? []
  const bytes =
    number === undefined ? 0 : Math.round(Number(number) * UNITS[unit!.toLowerCase() as keyof typeof UNITS])
  if (Number.isSafeInteger(bytes) && bytes > 0) return bytes
  const names = ['auto', 'max', ...Object.keys(RAM_PRESETS)].join(', ')
  throw new InvalidArgumentError(`Expected a size like 8GB or 7.5GiB, or one of ${names}.`)
}

/** A seed: a whole number of 64 bits. */
export const seed = (text: string): bigint => {
  if (/^\d+$/.test(text) && BigInt(text) < 1n << 64n) return BigInt(text)
  throw new InvalidArgumentError('Expected a whole number below 2^64.')
}

/** Token ids separated by commas. */
export const idList = (text: string): number[] => {
  const ids = text.split(',').map(Number)
  if (/^\d+(,\d+)*$/.test(text) && ids.every(Number.isSafeInteger)) return ids
  throw new InvalidArgumentError('Expected token ids separated by commas, like 1,2,3.')
}

/** Whether a JSON value is a list of whole numbers of at least 0. */
export const isTokenIds = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((id) => Number.isSafeInteger(id) && id >= 0)

/** A share: a decimal number from 0 to below 1. */
export const share = (text: string): number => {
  const value = decimal(text)
  if (value >= 0 && value < 1) return value
  throw new InvalidArgumentError('Expected a number from 0 to below 1.')
}
