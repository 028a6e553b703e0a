import { createPool, type TaskPool } from '@k3/task-pool'
import { afterAll } from 'vitest'
import { gaussian, poisoned } from '../../native-kit/test-kit/arrays.js'
import { createKda, type KdaInputs, type KdaParameters, type KdaShape, type KdaState } from '../src/index.js'

/** A shape with the constants of Kimi-K3. */
export const shapeOf = (heads: number, headDim: number, convTaps: number): KdaShape => ({
  heads,
  headDim,
  convTaps,
  gateLowerBound: -5,
  normEps: 1e-5
})

/** Seeded parameters; A_log as padded as the checkpoint's. */
export const parametersOf = ({ heads, headDim, convTaps }: KdaShape, seed = 1): KdaParameters => {
  const width = heads * headDim
  return {
    qConv: gaussian(width * convTaps, seed, 0.5),
    kConv: gaussian(width * convTaps, seed + 1, 0.5),
    vConv: gaussian(width * convTaps, seed + 2, 0.5),
    aLog: Float32Array.from({ length: heads + 7 }, (_, h) => (h < heads ? Math.sin(h) : NaN)),
    dtBias: gaussian(width, seed + 3),
    oNorm: gaussian(headDim, seed + 4)
  }
}

/** Seeded projections of `tokens` tokens. */
export const inputsOf = ({ heads, headDim }: KdaShape, tokens: number, seed = 10): KdaInputs => {
  const row = (which: number, scale: number) => gaussian(tokens * heads * headDim, seed + which, scale)
  return {
    q: row(0, 1),
    k: row(1, 1),
    v: row(2, 2),
    decay: row(3, 3),
    gate: row(4, 2),
    beta: gaussian(tokens * heads, seed + 5, 2)
  }
}

/** The rows from token `from` on, without copying. */
export const rowsFrom = (inputs: KdaInputs, { heads, headDim }: KdaShape, from: number): KdaInputs => {
  const at = from * heads * headDim
  return {
    q: inputs.q.subarray(at),
    k: inputs.k.subarray(at),
    v: inputs.v.subarray(at),
    decay: inputs.decay.subarray(at),
    gate: inputs.gate.subarray(at),
    beta: inputs.beta.subarray(from * heads)
  }
}

/** What the runs of a comparison share: made once, because seeding it takes longer than running it. */
export interface Sequence {
  readonly shape: KdaShape
  readonly parameters: KdaParameters
  readonly inputs: KdaInputs
  readonly tokens: number
  /** The state of a sequence that has begun. */
  readonly start: KdaState
}

export const sequenceOf = (shape: KdaShape, tokens: number): Sequence => {
  const parameters = parametersOf(shape)
  const start = startOf(createKda(shape, parameters).createState())
  return { shape, parameters, inputs: inputsOf(shape, tokens), tokens, start }
}

export interface Run {
  readonly out: Float32Array
  readonly state: KdaState
}

/** Feeds a sequence in calls of the given lengths; the last one repeats. */
export const run = (
  { shape, parameters, inputs, tokens, start }: Sequence,
  lengths: readonly number[],
  options: NonNullable<Parameters<typeof createKda>[2]>
): Run => {
  const kda = createKda(shape, parameters, options)
  const state = start.copy()
  const width = shape.heads * shape.headDim
  const out = poisoned(tokens * width)
  for (let from = 0, call = 0; from < tokens; call++) {
    const length = Math.min(lengths[Math.min(call, lengths.length - 1)]!, tokens - from)
    kda.forward(rowsFrom(inputs, shape, from), state, out.subarray(from * width), length)
    from += length
  }
  return { out, state }
}

/** The state of a sequence that has begun. */
export const startOf = (state: KdaState): KdaState => {
  state.recurrence.set(gaussian(state.recurrence.length, 77, 0.3))
  state.tails.set(gaussian(state.tails.length, 78))
  return state
}

/** No pool, and pools of 1 to 4 threads, closed after the tests of the file. */
export const pools = (): (TaskPool | undefined)[] => {
  const made = [1, 2, 3, 4].map((threads) => createPool({ threads, spinMicros: 0 }))
  afterAll(() => {
    for (const pool of made) pool.close()
  })
  return [undefined, ...made]
}
