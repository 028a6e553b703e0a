import { createPool, type TaskPool } from '@k3/task-pool'
import { afterAll } from 'vitest'
import { bitsOf, words } from '../../native-kit/test-kit/arrays.js'

/** Index of the first number of `want` whose bits `got` does not have, -1 when there is none. */
export const firstDifference = (got: Float32Array, want: Float32Array): number => {
  const bits = bitsOf(got)
  return bitsOf(want).findIndex((word, i) => word !== bits[i])
}

/** Seeded bytes. */
export const randomBytes = (length: number, seed: number): Uint8Array => {
  const next = words(seed)
  const all = new Uint32Array(Math.ceil(length / 4))
  for (let i = 0; i < all.length; i++) all[i] = next()
  return new Uint8Array(all.buffer, 0, length)
}

/** Seeded numbers in [-1, 1), some of them exact zeros. */
export const randomNumbers = (length: number, seed: number): Float32Array => {
  const all = new Int32Array(randomBytes(4 * length, seed).buffer)
  return Float32Array.from(all, (word) => (word % 61 === 0 ? 0 : word / 2 ** 31))
}

/** A seeded MXFP4 matrix with every code and scales around 2^-6, as in the released weights. */
export const randomMatrix = (rows: number, cols: number, seed: number) => ({
  packed: randomBytes((rows * cols) / 2, seed),
  scales: randomBytes((rows * cols) / 32, seed + 1).map((byte) => 118 + (byte & 7)),
  rows,
  cols
})

/** The same bytes at an odd address. */
export const misaligned = (bytes: Uint8Array, by: number): Uint8Array => {
  const copy = new Uint8Array(bytes.length + 16).subarray(by, by + bytes.length)
  copy.set(bytes)
  return copy
}

/** No pool, and pools of 1 to 4 threads, closed after the tests of the file. */
export const pools = (): { name: string; pool?: TaskPool }[] => {
  const made = [1, 2, 3, 4].map((threads) => createPool({ threads, spinMicros: 0 }))
  afterAll(() => {
    for (const pool of made) pool.close()
  })
  return [{ name: 'no pool' }, ...made.map((pool) => ({ name: `${pool.threads} threads`, pool }))]
}
