import { createPool } from '@k3/task-pool'
import { describe, expect, it } from 'vitest'
import { createVectorOps, foldKeyWeight, VectorOpsError } from '../src/index.js'

const ops = createVectorOps()
const f32 = (length: number) => new Float32Array(length)
const outOfRange = expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' })
const wrongType = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })
const betas = { beta: 4, linearBeta: 25 }
const spec = { bias: f32(8), k: 2, renormalize: true, scalingFactor: 1 }

/** What a call throws; it fails the test when it throws nothing. */
const thrown = (call: () => void): unknown => {
  try {
    call()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

describe('vector ops refuse', () => {
  it.each([
    ['x', () => ops.rmsNorm(f32(15), f32(8), 1e-5, f32(16), 2)],
    ['out', () => ops.rmsNorm(f32(16), f32(8), 1e-5, f32(15), 2)],
    ['weight', () => ops.rmsNorm(f32(16), f32(0), 1e-5, f32(16), 2)],
    ['tokens', () => ops.rmsNorm(f32(16), f32(8), 1e-5, f32(16), -1)],
    ['tokens', () => ops.rmsNorm(f32(16), f32(8), 1e-5, f32(16), 1.5)],
    ['eps', () => ops.rmsNorm(f32(16), f32(8), 0, f32(16), 1)],
    ['eps', () => ops.rmsNorm(f32(16), f32(8), 1e-60, f32(16), 1)],
    ['eps', () => ops.residualMix([f32(8)], f32(8), NaN, f32(8), 1)],
    ['sources.length', () => ops.residualMix([], f32(8), 1e-5, f32(8), 1)],
    ['sources.length', () => ops.residualMix(new Array(65).fill(f32(8)), f32(8), 1e-5, f32(8), 1)],
    ['sources[i]', () => ops.residualMix([f32(8), f32(7)], f32(8), 1e-5, f32(8), 1)],
    ['out', () => ops.residualMix([f32(16)], f32(8), 1e-5, f32(8), 2)],
    ['out', () => ops.mixWeights([f32(8), f32(8)], f32(8), 1e-5, f32(1), 1)],
    ['up', () => ops.situGlu(f32(8), f32(7), betas, f32(8), 8)],
    ['beta', () => ops.situGlu(f32(8), f32(8), { beta: 0, linearBeta: 1 }, f32(8), 8)],
    ['beta', () => ops.situGlu(f32(8), f32(8), undefined as never, f32(8), 8)],
    ['linearBeta', () => ops.situGlu(f32(8), f32(8), { beta: 1, linearBeta: Infinity }, f32(8), 8)],
    ['length', () => ops.add(f32(8), f32(8), f32(8), NaN)],
    ['b', () => ops.add(f32(8), f32(7), f32(8), 8)],
    ['x', () => ops.exp(f32(7), f32(8), 8)],
    ['out', () => ops.tanh(f32(8), f32(7), 8)],
    ['k', () => ops.createRouter({ ...spec, k: 0 })],
    ['k', () => ops.createRouter({ ...spec, k: 9 })],
    ['k', () => ops.createRouter({ ...spec, bias: f32(900), k: 257 })],
    ['bias', () => ops.createRouter({ ...spec, bias: f32(0) })],
    ['scalingFactor', () => ops.createRouter({ ...spec, scalingFactor: 0 })],
    ['logits', () => ops.createRouter(spec).route(f32(15), new Int32Array(4), f32(4), 2)],
    ['indices', () => ops.createRouter(spec).route(f32(16), new Int32Array(3), f32(4), 2)],
    ['weights', () => ops.createRouter(spec).route(f32(16), new Int32Array(4), f32(3), 2)],
    ['projection', () => foldKeyWeight(f32(8), f32(7))]
  ])('a bad %s by name (%#)', (name, call) => {
    const error = thrown(call)
    expect(error).toEqual(outOfRange)
    expect((error as Error).message).toContain(name)
  })

  it('arrays of another kind', () => {
    const doubles = new Float64Array(8) as unknown as Float32Array
    const small = new Uint32Array(8) as unknown as Int32Array
    expect(thrown(() => ops.sigmoid(doubles, f32(8), 8))).toEqual(wrongType)
    expect(thrown(() => ops.rmsNorm(f32(8), f32(8), 1e-5, doubles, 1))).toEqual(wrongType)
    expect(thrown(() => ops.createRouter(spec).route(f32(8), small, f32(2), 1))).toEqual(wrongType)
  })

  it('outputs that overlap an input other than exactly', () => {
    const memory = f32(40)
    const [x, later] = [memory.subarray(0, 16), memory.subarray(4, 20)]
    const overlaps = [
      () => ops.rmsNorm(x, f32(8), 1e-5, later, 2),
      () => ops.rmsNorm(f32(16), memory.subarray(0, 8), 1e-5, x, 2),
      () => ops.residualMix([f32(16), x], f32(8), 1e-5, later, 2),
      () => ops.residualMix([f32(16)], x.subarray(0, 8), 1e-5, later, 2),
      () => ops.mixWeights([x], f32(8), 1e-5, x, 2),
      () => ops.mixWeights([f32(16)], x.subarray(0, 8), 1e-5, later, 2),
      () => ops.situGlu(f32(16), x, betas, later, 16),
      () => ops.add(x, f32(16), later, 16),
      () => ops.tanh(later, x, 16),
      () => ops.createRouter(spec).route(x, new Int32Array(4), x, 2),
      () => ops.createRouter(spec).route(x, new Int32Array(memory.buffer, 0, 4), f32(4), 2),
      () => ops.createRouter(spec).route(f32(16), new Int32Array(memory.buffer, 4, 4), memory, 2)
    ]
    for (const call of overlaps) {
      const error = thrown(call)
      expect(error).toEqual(outOfRange)
      expect((error as Error).message).toContain('overlaps')
    }
    ops.tanh(memory.subarray(16, 32), x, 16)
    ops.tanh(x, x, 16)
  })

  it('an array whose buffer was handed away', () => {
    const gone = f32(8)
    structuredClone(gone.buffer, { transfer: [gone.buffer] })
    expect(thrown(() => ops.exp(gone, f32(8), 8))).toEqual(outOfRange)
  })

  it('an instruction set that is not there', () => {
    const other = process.arch === 'arm64' ? 'avx2' : 'neon'
    expect(thrown(() => createVectorOps({ isa: other }))).toEqual(
      expect.objectContaining({ code: 'ERR_ISA_UNSUPPORTED' })
    )
  })

  it('a handle that is no pool', () => {
    const pool = { handle: {} }
    const badHandle = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_HANDLE' })
    for (const bad of [pool, 5, null, {}, 'pool'])
      expect(thrown(() => createVectorOps({ pool: bad as never }))).toEqual(badHandle)
  })

  it('to work on a closed pool', () => {
    const pool = createPool({ threads: 2 })
    const closed = createVectorOps({ pool })
    const router = closed.createRouter({ ...spec, bias: f32(4096) })
    pool.close()
    const calls = [
      () => closed.rmsNorm(f32(2 ** 17), f32(2 ** 16), 1e-5, f32(2 ** 17), 2),
      () => closed.residualMix([f32(2 ** 17)], f32(2 ** 16), 1e-5, f32(2 ** 17), 2),
      () => closed.add(f32(2 ** 17), f32(2 ** 17), f32(2 ** 17), 2 ** 17),
      () => closed.exp(f32(2 ** 17), f32(2 ** 17), 2 ** 17),
      () => closed.situGlu(f32(2 ** 17), f32(2 ** 17), betas, f32(2 ** 17), 2 ** 17),
      () => router.route(f32(8192), new Int32Array(4), f32(4), 2)
    ]
    for (const call of calls) {
      expect(thrown(call)).toEqual(expect.objectContaining({ code: 'ERR_TASK_POOL_CLOSED' }))
    }
  })
})

describe('a router refuses', () => {
  const tokens = 40
  const router = (bias: Float32Array) => ops.createRouter({ ...spec, bias })

  it.each([NaN, Infinity, -Infinity])('a logit that is %d, with token and expert', (bad) => {
    for (const [token, expert] of [
      [0, 0],
      [3, 7],
      [39, 130]
    ] as const) {
      const logits = f32(tokens * 131)
      logits[token * 131 + expert] = bad
      const error = thrown(() => router(f32(131)).route(logits, new Int32Array(80), f32(80), tokens))
      expect(error).toBeInstanceOf(VectorOpsError)
      expect(error).toMatchObject({ code: 'ERR_VECTOR_OPS_NONFINITE', token, expert })
    }
  })

  it('by the name it was given', () => {
    const [bad, indices, weights] = [f32(2).fill(NaN), new Int32Array(1), f32(1)]
    const named = ops.createRouter({ ...spec, bias: f32(2), k: 1, name: 'router of layer 7' })
    const error = thrown(() => named.route(bad, indices, weights, 1))
    expect(error).toMatchObject({ router: 'router of layer 7' })
    expect((error as Error).message).toMatch(/^router of layer 7: token 0, expert 0/)
    expect(thrown(() => router(f32(2)).route(bad, new Int32Array(2), f32(2), 1))).toMatchObject({
      router: 'router'
    })
  })

  it('a bias that is NaN, with the first token', () => {
    const bias = f32(131)
    bias[129] = NaN
    const error = thrown(() => router(bias).route(f32(2 * 131), new Int32Array(4), f32(4), 2))
    expect(error).toMatchObject({ code: 'ERR_VECTOR_OPS_NONFINITE', token: 0, expert: 129 })
  })

  it('with the first of several bad tokens, whatever the threads', () => {
    const pool = createPool({ threads: 4 })
    const logits = f32(tokens * 896)
    for (const token of [38, 21, 5, 17]) logits[token * 896 + token] = NaN
    const shared = createVectorOps({ pool }).createRouter({ ...spec, bias: f32(896) })
    const error = thrown(() => shared.route(logits, new Int32Array(80), f32(80), tokens))
    expect(error).toMatchObject({ token: 5, expert: 5 })
    pool.close()
  })
})
