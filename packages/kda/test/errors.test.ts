import { createPool } from '@k3/task-pool'
import { describe, expect, it } from 'vitest'
import { createKda, type KdaInputs, type KdaState, l2Normalize, shortConv } from '../src/index.js'
import { inputsOf, parametersOf, shapeOf } from './layer.js'

const shape = shapeOf(2, 8, 4)
const parameters = parametersOf(shape)
const kda = createKda(shape, parameters)
const inputs = inputsOf(shape, 2)
const f32 = (length: number) => new Float32Array(length)
const outOfRange = expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' })
const wrongType = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })
const conv = { tokens: 2, channels: 8, taps: 4 }

/** What a call throws; it fails the test when it throws nothing. */
const thrown = (call: () => void): unknown => {
  try {
    call()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
const forward = (
  change: Partial<KdaInputs>,
  state: KdaState = kda.createState(),
  out: Float32Array = f32(32),
  tokens = 2
) => kda.forward({ ...inputs, ...change }, state, out, tokens)

describe('kda refuses', () => {
  it.each([
    ['heads', () => createKda({ ...shape, heads: 0 }, parameters)],
    ['headDim', () => createKda({ ...shape, headDim: 1.5 }, parameters)],
    ['convTaps', () => createKda({ ...shape, convTaps: 0 }, parameters)],
    ['gateLowerBound', () => createKda({ ...shape, gateLowerBound: 0 }, parameters)],
    ['gateLowerBound', () => createKda({ ...shape, gateLowerBound: -Infinity }, parameters)],
    ['gateLowerBound', () => createKda({ ...shape, gateLowerBound: NaN }, parameters)],
    ['normEps', () => createKda({ ...shape, normEps: 0 }, parameters)],
    ['normEps', () => createKda({ ...shape, normEps: 1e-60 }, parameters)],
    ['qConv', () => createKda(shape, { ...parameters, qConv: f32(63) })],
    ['kConv', () => createKda(shape, { ...parameters, kConv: f32(65) })],
    ['vConv', () => createKda(shape, { ...parameters, vConv: f32(0) })],
    ['aLog', () => createKda(shape, { ...parameters, aLog: f32(1) })],
    ['dtBias', () => createKda(shape, { ...parameters, dtBias: f32(17) })],
    ['oNorm', () => createKda(shape, { ...parameters, oNorm: f32(16) })],
    ['tokens', () => forward({}, kda.createState(), f32(32), -1)],
    ['tokens', () => forward({}, kda.createState(), f32(32), NaN)],
    ['q', () => forward({ q: f32(31) })],
    ['k', () => forward({ k: f32(31) })],
    ['v', () => forward({ v: f32(31) })],
    ['decay', () => forward({ decay: f32(31) })],
    ['beta', () => forward({ beta: f32(3) })],
    ['gate', () => forward({ gate: f32(31) })],
    ['out', () => forward({}, kda.createState(), f32(31))],
    [
      'state.recurrence',
      () => forward({}, createKda(shapeOf(3, 8, 4), parametersOf(shapeOf(3, 8, 4))).createState())
    ],
    [
      'state.tails',
      () => forward({}, createKda(shapeOf(2, 8, 5), parametersOf(shapeOf(2, 8, 5))).createState())
    ],
    [
      'state.tails',
      () => forward({}, createKda(shapeOf(2, 8, 3), parametersOf(shapeOf(2, 8, 3))).createState())
    ],
    ['recurrence', () => kda.recur(inputs, f32(127), f32(32), 2)],
    ['q', () => kda.recur({ ...inputs, q: f32(31) }, f32(128), f32(32), 2)],
    ['z', () => kda.decayGate(f32(31), f32(32), 2)],
    ['g', () => kda.decayGate(f32(32), f32(31), 2)],
    ['tokens', () => kda.decayGate(f32(32), f32(32), -2)],
    ['x', () => shortConv(f32(15), f32(24), f32(32), f32(16), conv)],
    ['tail', () => shortConv(f32(16), f32(23), f32(32), f32(16), conv)],
    ['weight', () => shortConv(f32(16), f32(24), f32(31), f32(16), conv)],
    ['out', () => shortConv(f32(16), f32(24), f32(32), f32(15), conv)],
    ['taps', () => shortConv(f32(16), f32(24), f32(32), f32(16), { ...conv, taps: 0 })],
    ['channels', () => shortConv(f32(16), f32(24), f32(32), f32(16), { ...conv, channels: 0 })],
    ['eps', () => l2Normalize(f32(8), f32(8), { rows: 1, dim: 8, eps: -1 })],
    ['dim', () => l2Normalize(f32(8), f32(8), { rows: 1, dim: 0, eps: 1 })],
    ['x', () => l2Normalize(f32(7), f32(8), { rows: 1, dim: 8, eps: 1 })],
    ['out', () => l2Normalize(f32(8), f32(7), { rows: 1, dim: 8, eps: 1 })]
  ])('a bad %s by name (%#)', (name, call) => {
    const error = thrown(call)
    expect(error).toEqual(outOfRange)
    expect((error as Error).message).toContain(name)
  })

  it('an output that overlaps an input', () => {
    for (const name of ['q', 'k', 'v', 'decay', 'beta', 'gate'] as const) {
      const memory = f32(64)
      expect(thrown(() => forward({ [name]: memory }, kda.createState(), memory.subarray(3)))).toEqual(
        outOfRange
      )
    }
    const memory = f32(64)
    forward({ q: memory }, kda.createState(), memory.subarray(32))
    expect(thrown(() => shortConv(memory, f32(24), f32(32), memory.subarray(8), conv))).toEqual(outOfRange)
  })

  it('arrays of another kind, and detached ones', () => {
    const doubles = new Float64Array(32) as unknown as Float32Array
    expect(thrown(() => forward({ v: doubles }))).toEqual(wrongType)
    expect(thrown(() => forward({}, kda.createState(), doubles))).toEqual(wrongType)
    const gone = new Float32Array(32)
    structuredClone(gone, { transfer: [gone.buffer] })
    expect(thrown(() => forward({ gate: gone }))).toEqual(outOfRange)
  })

  it('a handle that is no pool, and an instruction set that is not there', () => {
    const badHandle = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_HANDLE' })
    for (const bad of [{ handle: {} }, 5, null, {}])
      expect(thrown(() => createKda(shape, parameters, { pool: bad as never }))).toEqual(badHandle)
    expect(
      thrown(() => shortConv(f32(16), f32(24), f32(32), f32(16), { ...conv, pool: { handle: {} } }))
    ).toEqual(badHandle)
    const isa = process.arch === 'arm64' ? 'avx2' : 'neon'
    const unsupported = expect.objectContaining({ name: 'RangeError', code: 'ERR_ISA_UNSUPPORTED' })
    expect(thrown(() => createKda(shape, parameters, { isa }))).toEqual(unsupported)
  })

  it('to work on a closed pool, and leaves the state as it was', () => {
    const pool = createPool({ threads: 2 })
    const bound = createKda(shape, parameters, { pool })
    const state = bound.createState()
    pool.close()
    const closed = expect.objectContaining({ code: 'ERR_TASK_POOL_CLOSED' })
    expect(thrown(() => bound.forward(inputs, state, f32(32), 2))).toEqual(closed)
    expect(thrown(() => bound.recur(inputs, state.recurrence, f32(32), 2))).toEqual(closed)
    expect(thrown(() => shortConv(f32(16), f32(24), f32(32), f32(16), { ...conv, pool }))).toEqual(closed)
    expect([...state.recurrence, ...state.tails].every((x) => x === 0)).toBe(true)
  })

  it('to lose its parameters: they are copies', () => {
    const own = parametersOf(shape)
    const bound = createKda(shape, own)
    const want = f32(32)
    bound.forward(inputs, bound.createState(), want, 2)
    for (const array of Object.values(own) as Float32Array[]) array.fill(NaN)
    const out = f32(32)
    bound.forward(inputs, bound.createState(), out, 2)
    expect([...out]).toEqual([...want])
  })
})
