import { createPool } from '@k3/task-pool'
import { describe, expect, it } from 'vitest'
import { createLinear, createLinearGroup, widen } from '../src/index.js'

const weights = new Uint16Array(4 * 8)
const linear = createLinear({ weights, rows: 4, cols: 8 })
const f32 = (length: number) => new Float32Array(length)
const outOfRange = expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' })

/** What a call throws; it fails the test when it throws nothing. */
const thrown = (call: () => void): unknown => {
  try {
    call()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

describe('bf16-linear refuses', () => {
  const region = { handle: {}, bytes: 64 }

  it.each([
    ['weights', () => createLinear({ weights, rows: 5, cols: 8 })],
    ['weights', () => createLinear({ weights: { region, offset: 1 }, rows: 4, cols: 8 })],
    ['weights', () => createLinear({ weights: { region, offset: -1 }, rows: 1, cols: 8 })],
    ['weights', () => createLinear({ weights: { region, offset: 0.5 }, rows: 1, cols: 8 })],
    ['rows', () => createLinear({ weights, rows: -1, cols: 8 })],
    ['rows', () => createLinear({ weights, rows: 1.5, cols: 8 })],
    ['cols', () => createLinear({ weights, rows: 1, cols: 0 })],
    ['tokens', () => linear.apply(f32(8), f32(4), -1)],
    ['x', () => linear.apply(f32(15), f32(8), 2)],
    ['out', () => linear.apply(f32(16), f32(7), 2)],
    ['linears.length', () => createLinearGroup([])],
    ['same input', () => createLinearGroup([linear, createLinear({ weights, rows: 2, cols: 16 })])],
    ['outs.length', () => createLinearGroup([linear, linear]).apply(f32(8), [f32(4)], 1)],
    ['outs[i]', () => createLinearGroup([linear, linear]).apply(f32(8), [f32(4), f32(3)], 1)],
    ['weights', () => widen(weights, 33)],
    ['length', () => widen(weights, -1)]
  ])('bad %s by name (%#)', (name, call) => {
    const error = thrown(call)
    expect(error).toEqual(outOfRange)
    expect((error as Error).message).toContain(name)
  })

  it('an output that overlaps its input or another output', () => {
    const memory = f32(32)
    const calls = [
      () => linear.apply(memory, memory, 1),
      () => linear.apply(memory.subarray(4), memory.subarray(2), 1),
      () => createLinearGroup([linear, linear]).apply(memory, [f32(4), memory.subarray(7)], 1),
      () => createLinearGroup([linear, linear]).apply(f32(8), [memory, memory.subarray(3)], 1)
    ]
    for (const call of calls) expect(thrown(call)).toEqual(outOfRange)
    linear.apply(memory, memory.subarray(8), 1)
  })

  it('arrays of another kind', () => {
    const doubles = new Float64Array(8) as unknown as Float32Array
    const wrongType = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })
    expect(thrown(() => linear.apply(doubles, f32(4), 1))).toEqual(wrongType)
    expect(thrown(() => linear.apply(f32(8), doubles, 1))).toEqual(wrongType)
    for (const bad of [undefined, null, 5, [1, 2], {}, { region: 5, offset: 0 }]) {
      expect(thrown(() => createLinear({ weights: bad as never, rows: 4, cols: 8 }))).toEqual(wrongType)
      expect(thrown(() => widen(bad as never, 4))).toEqual(wrongType)
    }
  })

  it('weights whose memory may move or go', () => {
    const resizable = Reflect.construct(ArrayBuffer, [64, { maxByteLength: 128 }]) as ArrayBuffer
    const view = new Uint8Array(resizable)
    expect(thrown(() => createLinear({ weights: view, rows: 4, cols: 8 }))).toEqual(outOfRange)
    const own = weights.slice()
    const bound = createLinear({ weights: own, rows: 4, cols: 8 })
    const moved = structuredClone(own.buffer, { transfer: [own.buffer] })
    expect(moved.byteLength).toBe(64)
    const detached = expect.objectContaining({ code: 'ERR_WEIGHTS_DETACHED' })
    expect(thrown(() => bound.apply(f32(8), f32(4), 1))).toEqual(detached)
    expect(thrown(() => createLinearGroup([linear, bound]).apply(f32(8), [f32(4), f32(4)], 1))).toEqual(
      detached
    )
  })

  it('handles that are no pool, no region and no linear', () => {
    const badHandle = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_HANDLE' })
    const pool = createPool({ threads: 1 })
    const calls = [
      () => createLinear({ weights, rows: 4, cols: 8 }, { pool: { handle: linear.handle } }),
      () => createLinear({ weights: { region, offset: 0 }, rows: 4, cols: 8 }),
      () =>
        createLinear({
          weights: { region: { ...region, handle: pool.handle }, offset: 0 },
          rows: 4,
          cols: 8
        }),
      () => createLinear({ weights: new DataView(weights.buffer), rows: 4, cols: 8 }),
      () => createLinearGroup([{ ...linear, handle: pool.handle }]).apply(f32(8), [f32(4)], 1)
    ]
    for (const call of calls) expect(thrown(call)).toEqual(badHandle)
    for (const bad of [5, null, {}, 'pool'])
      expect(thrown(() => createLinear({ weights, rows: 4, cols: 8 }, { pool: bad as never }))).toEqual(
        badHandle
      )
    pool.close()
  })

  it('an instruction set that is not there', () => {
    const other = process.arch === 'arm64' ? 'avx2' : 'neon'
    const unsupported = expect.objectContaining({ name: 'RangeError', code: 'ERR_ISA_UNSUPPORTED' })
    expect(thrown(() => createLinear({ weights, rows: 4, cols: 8 }, { isa: other }))).toEqual(unsupported)
  })

  it('to work on a closed pool', () => {
    const pool = createPool({ threads: 2 })
    const bound = createLinear({ weights, rows: 4, cols: 8 }, { pool })
    const group = createLinearGroup([bound])
    pool.close()
    const closed = expect.objectContaining({ code: 'ERR_TASK_POOL_CLOSED' })
    expect(thrown(() => bound.apply(f32(8), f32(4), 1))).toEqual(closed)
    expect(thrown(() => group.apply(f32(8), [f32(4)], 1))).toEqual(closed)
  })
})
