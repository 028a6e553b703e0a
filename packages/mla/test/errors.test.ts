import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createPool } from '@k3/task-pool'
import { describe, expect, it } from 'vitest'
import { createMla, type MlaCache, type MlaInputs } from '../src/index.js'
import { inputsOf, parametersOf, shapeOf } from './layer.js'

const shape = shapeOf([2, 8, 4, 8, 16])
const parameters = parametersOf(shape)
const mla = createMla(shape, parameters)
const inputs = inputsOf(shape, 2)
const f32 = (length: number): Float32Array => new Float32Array(length)
const outOfRange = expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' })
const wrongType = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })

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
  change: Partial<MlaInputs>,
  cache: MlaCache = mla.createCache(),
  out = f32(32),
  tokens = 2
) => mla.forward({ ...inputs, ...change }, cache, out, tokens)

describe('mla refuses', () => {
  it.each([
    ['heads', () => createMla({ ...shape, heads: 0 }, parameters)],
    ['nopeDim', () => createMla({ ...shape, nopeDim: 0 }, parameters)],
    ['sharedKeyDim', () => createMla({ ...shape, sharedKeyDim: -1 }, parameters)],
    ['valueDim', () => createMla({ ...shape, valueDim: 0.5 }, parameters)],
    ['latentDim', () => createMla({ ...shape, latentDim: 0 }, parameters)],
    ['normEps', () => createMla({ ...shape, normEps: 0 }, parameters)],
    ['normEps', () => createMla({ ...shape, normEps: Infinity }, parameters)],
    ['kvNorm', () => createMla(shape, { ...parameters, kvNorm: f32(15) })],
    ['kvNorm', () => createMla(shape, { ...parameters, kvNorm: f32(17) })],
    ['kvUp', () => createMla(shape, { ...parameters, kvUp: new Uint16Array(511) })],
    [
      'kvUp',
      () => createMla(shape, { ...parameters, kvUp: { region: { handle: {}, bytes: 1024 }, offset: 1 } })
    ],
    ['tokens', () => forward({}, mla.createCache(), f32(32), -1)],
    ['queries', () => forward({ queries: f32(47) })],
    ['kv', () => forward({ kv: f32(39) })],
    ['gate', () => forward({ gate: f32(31) })],
    ['out', () => forward({}, mla.createCache(), f32(31))],
    ['cache', () => forward({}, createMla({ ...shape, sharedKeyDim: 5 }, parameters).createCache())]
  ])('a bad %s by name (%#)', (name, call) => {
    const error = thrown(call)
    expect(error).toEqual(outOfRange)
    expect((error as Error).message).toContain(name)
  })

  it('an output that overlaps an input', () => {
    for (const name of ['queries', 'kv', 'gate'] as const) {
      const memory = f32(80)
      expect(thrown(() => forward({ [name]: memory }, mla.createCache(), memory.subarray(20)))).toEqual(
        outOfRange
      )
    }
    const memory = f32(80)
    forward({ gate: memory }, mla.createCache(), memory.subarray(32))
  })

  it('arrays of another kind', () => {
    const doubles = new Float64Array(80) as unknown as Float32Array
    expect(thrown(() => forward({ kv: doubles }))).toEqual(wrongType)
    expect(thrown(() => forward({}, mla.createCache(), doubles))).toEqual(wrongType)
  })

  it('weights whose memory may move or go', () => {
    const resizable = Reflect.construct(ArrayBuffer, [2048, { maxByteLength: 4096 }]) as ArrayBuffer
    expect(thrown(() => createMla(shape, { ...parameters, kvUp: new Uint8Array(resizable) }))).toEqual(
      outOfRange
    )
    const kvUp = parameters.kvUp.slice()
    const bound = createMla(shape, { ...parameters, kvUp })
    const cache = bound.createCache()
    structuredClone(kvUp, { transfer: [kvUp.buffer] })
    const detached = expect.objectContaining({ code: 'ERR_WEIGHTS_DETACHED' })
    expect(thrown(() => bound.forward(inputs, cache, f32(32), 2))).toEqual(detached)
    expect(cache.length).toBe(0)
  })

  it('handles that are no pool and no region, and an instruction set that is not there', () => {
    const badHandle = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_HANDLE' })
    const kvUp = { region: { handle: {}, bytes: 1024 }, offset: 0 }
    for (const bad of [{ handle: {} }, 5, null, {}])
      expect(thrown(() => createMla(shape, parameters, { pool: bad as never }))).toEqual(badHandle)
    expect(thrown(() => createMla(shape, { ...parameters, kvUp }))).toEqual(badHandle)
    const isa = process.arch === 'arm64' ? 'avx2' : 'neon'
    const unsupported = expect.objectContaining({ name: 'RangeError', code: 'ERR_ISA_UNSUPPORTED' })
    expect(thrown(() => createMla(shape, parameters, { isa }))).toEqual(unsupported)
  })

  it('to work on a closed pool, and leaves the cache as it was', () => {
    const pool = createPool({ threads: 2 })
    const bound = createMla(shape, parameters, { pool })
    const cache = bound.createCache()
    pool.close()
    const closed = expect.objectContaining({ code: 'ERR_TASK_POOL_CLOSED' })
    expect(thrown(() => bound.forward(inputs, cache, f32(32), 2))).toEqual(closed)
    expect(cache.length).toBe(0)
  })

  // Heads so many that the scratch is 300 MB, in a process that may have 100 MB more.
  const prlimit = spawnSync('prlimit', ['--version']).status === 0
  it.skipIf(!prlimit)('a call for which there is no memory (needs prlimit)', () => {
    const heads = 2 ** 20
    const many = shapeOf([heads, 1, 0, 1, 1])
    const bound = createMla(many, { kvNorm: f32(1), kvUp: new Uint16Array(2 * heads) })
    const cache = bound.createCache()
    const wide = { queries: f32(heads), kv: f32(1), gate: f32(heads) }
    const out = f32(heads)
    const usedKilobytes = Number(/^VmSize:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))![1])
    const limit = (bytes: string) =>
      execFileSync('prlimit', ['--pid', String(process.pid), `--as=${bytes}:unlimited`])
    limit(String(1024 * usedKilobytes + 100e6))
    let error: unknown
    try {
      error = thrown(() => bound.forward(wide, cache, out, 1))
    } finally {
      limit('unlimited')
    }
    expect(error).toEqual(expect.objectContaining({ code: 'ERR_OUT_OF_MEMORY' }))
    expect(cache.length).toBe(0)
    bound.forward(wide, cache, out, 1)
    expect(cache.length).toBe(1)
  })
})
