import { createPool, type TaskPool } from '@k3/task-pool'
import { afterAll } from 'vitest'
import { gaussian, poisoned, words } from '../../native-kit/test-kit/arrays.js'
import { createMla, type MlaCache, type MlaInputs, type MlaParameters, type MlaShape } from '../src/index.js'

/** [heads, nope, shared, value, latent] with the epsilon of Kimi-K3. */
export const shapeOf = (sizes: readonly number[]): MlaShape => {
  const [heads, nopeDim, sharedKeyDim, valueDim, latentDim] = sizes as [
    number,
    number,
    number,
    number,
    number
  ]
  return { heads, nopeDim, sharedKeyDim, valueDim, latentDim, normEps: 1e-6 }
}

/** Seeded finite bf16 numbers between 2^-8 and 2^-2 in magnitude. */
const bf16 = (length: number, seed: number): Uint16Array => {
  const next = words(seed)
  return Uint16Array.from({ length }, () => {
    const word = next()
    return ((word & 1) << 15) | ((119 + ((word >>> 1) % 6)) << 7) | (word >>> 25)
  })
}

export const parametersOf = ({ heads, nopeDim, valueDim, latentDim }: MlaShape, seed = 1) => ({
  kvNorm: gaussian(latentDim, seed),
  kvUp: bf16(heads * (nopeDim + valueDim) * latentDim, seed + 1)
})

/** Seeded projections of `tokens` tokens. */
export const inputsOf = (shape: MlaShape, tokens: number, seed = 10): MlaInputs => ({
  queries: gaussian(tokens * shape.heads * (shape.nopeDim + shape.sharedKeyDim), seed, 2),
  kv: gaussian(tokens * (shape.latentDim + shape.sharedKeyDim), seed + 1),
  gate: gaussian(tokens * shape.heads * shape.valueDim, seed + 2, 2)
})

/** The rows from token `from` on, without copying. */
export const rowsFrom = (inputs: MlaInputs, shape: MlaShape, from: number): MlaInputs => ({
  queries: inputs.queries.subarray(from * shape.heads * (shape.nopeDim + shape.sharedKeyDim)),
  kv: inputs.kv.subarray(from * (shape.latentDim + shape.sharedKeyDim)),
  gate: inputs.gate.subarray(from * shape.heads * shape.valueDim)
})

/** What the runs of a comparison share: made once, because seeding it takes longer than running it. */
export interface Sequence {
  readonly shape: MlaShape
  readonly parameters: MlaParameters
  readonly inputs: MlaInputs
  readonly tokens: number
}

export const sequenceOf = (sizes: readonly number[], tokens: number, seed = 1): Sequence => {
  const shape = shapeOf(sizes)
  return { shape, parameters: parametersOf(shape, seed), inputs: inputsOf(shape, tokens, seed + 9), tokens }
}

export interface Run {
  readonly out: Float32Array
  readonly cache: MlaCache
}

/** Feeds a sequence in calls of the given lengths; the last one repeats. */
export const run = (
  { shape, parameters, inputs, tokens }: Sequence,
  lengths: readonly number[],
  options: NonNullable<Parameters<typeof createMla>[2]>
): Run => {
  const mla = createMla(shape, parameters, options)
  const cache = mla.createCache()
  const width = shape.heads * shape.valueDim
  const out = poisoned(tokens * width)
  for (let from = 0, call = 0; from < tokens; call++) {
    const length = Math.min(lengths[Math.min(call, lengths.length - 1)]!, tokens - from)
    mla.forward(rowsFrom(inputs, shape, from), cache, out.subarray(from * width), length)
    from += length
  }
  return { out, cache }
}

/** The rows of a cache that count. */
export const usedRows = (cache: MlaCache): Float32Array =>
  cache.rows.subarray(0, cache.length * cache.rowLength)

/** No pool, and pools of 1 to 4 threads, closed after the tests of the file. */
export const pools = (): (TaskPool | undefined)[] => {
  const made = [1, 2, 3, 4].map((threads) => createPool({ threads, spinMicros: 0 }))
  afterAll(() => {
    for (const pool of made) pool.close()
  })
  return [undefined, ...made]
}
