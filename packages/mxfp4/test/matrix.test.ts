import { describe, expect, it } from 'vitest'
import { bitsOf, poisoned } from '../../native-kit/test-kit/arrays.js'
import { deviation, goldens } from '../../native-kit/test-kit/goldens.js'
import { createMatrix, decode, supportedIsas } from '../src/index.js'
import { matvecExact, weightAt } from '../src/reference.js'
import { firstDifference, misaligned, pools, randomMatrix, randomNumbers } from './arrays.js'
import { dot } from './lane-order.js'

const cases = [
  [1, 32],
  [3, 128],
  [33, 64],
  [5, 96],
  [33, 160],
  [17, 224],
  [7, 3072],
  [18, 3584]
] as const
const tokenCounts = [1, 2, 3, 4, 5, 7, 8, 32, 64, 65]
const parallel = pools()

describe.each(supportedIsas())('a matrix on %s', (isa) => {
  it.each(goldens('mxfp4_matvec').map((g) => [g.row.name, g] as const))('agrees with %s', (_, golden) => {
    const { rows, cols, batch } = golden.row.dims as { rows: number; cols: number; batch: number }
    const packed = golden.tensor<Uint8Array>('weight_packed')
    const matrix = createMatrix(
      { packed, scales: golden.tensor<Uint8Array>('weight_scale'), rows, cols },
      { isa }
    )
    const out = poisoned(batch * rows)
    matrix.apply(golden.tensor('x'), out, batch)
    expect(golden.complaint('out.y', out)).toBeNull()
  })

  it.each([
    ['mxfp4_matvec-16x3072-b5-s95', 40, 3072],
    ['mxfp4_matvec-33x64-b5-s93', 33, 64]
  ])('agrees with its double-precision twin as closely as with %s', (name, rows, cols) => {
    const { rel_l2, max_ulp } = goldens('mxfp4_matvec').find((g) => g.row.name === name)!.row.outputs[
      'out.y'
    ]!
    const spec = randomMatrix(rows, cols, 77)
    const x = randomNumbers(cols, 78)
    const out = poisoned(rows)
    createMatrix(spec, { isa }).apply(x, out, 1)
    const { relativeL2, maxUlp } = deviation(out, matvecExact(spec, x))
    expect(relativeL2).toBeLessThanOrEqual(rel_l2!)
    expect(maxUlp).toBeLessThanOrEqual(max_ulp!)
  })

  it('gives all bytes at all scales what double precision gives', () => {
    const rows = 255 * 16
    const packed = Uint8Array.from({ length: rows * 16 }, (_, i) => i)
    const scales = Uint8Array.from({ length: rows }, (_, row) => Math.floor(row / 16))
    const identity = new Float32Array(32 * 32)
    for (let i = 0; i < 32; i++) identity[33 * i] = 1
    const out = poisoned(32 * rows)
    createMatrix({ packed, scales, rows, cols: 32 }, { isa }).apply(identity, out, 32)
    const want = Float32Array.from(out, (_, i) =>
      weightAt(packed, scales, 32, i % rows, Math.floor(i / rows))
    )
    expect(
      firstDifference(
        out,
        want.map((w) => w + 0)
      )
    ).toBe(-1)
    const single = poisoned(rows)
    const matrix = createMatrix({ packed, scales, rows, cols: 32 }, { isa })
    for (let c = 0; c < 32; c++) {
      matrix.apply(identity.subarray(32 * c), single, 1)
      expect(firstDifference(single, out.subarray(c * rows, (c + 1) * rows))).toBe(-1)
    }
  })

  it.each(cases)(
    'of %i x %i has the bits of the documented order for any tokens, threads, address',
    (rows, cols) => {
      const spec = randomMatrix(rows, cols, rows + cols)
      const shifted = { ...spec, packed: misaligned(spec.packed, 1), scales: misaligned(spec.scales, 3) }
      const most = Math.max(...tokenCounts)
      const x = randomNumbers(most * cols, 5)
      const want = oneByOne(spec, x, most)
      const few = Math.min(most, 3)
      expect(bitsOf(want.subarray(0, few * rows))).toEqual(bitsOf(documented(spec, x, few)))
      for (const { name, pool } of parallel) {
        const matrix = createMatrix(name === 'no pool' ? spec : shifted, { isa, ...(pool && { pool }) })
        for (const tokens of tokenCounts) {
          const out = poisoned(tokens * rows + 1)
          matrix.apply(misalignedFloats(x.subarray(0, tokens * cols)), out, tokens)
          expect(firstDifference(out, want.subarray(0, tokens * rows)), `${tokens} tokens, ${name}`).toBe(-1)
          expect(out[tokens * rows]).toBeNaN()
        }
      }
    }
  )

  it('lets NaN and infinity through to the rows they touch', () => {
    const spec = { ...randomMatrix(3, 64, 9), packed: new Uint8Array(96).fill(0x22) }
    const x = new Float32Array(128).fill(1)
    x[70] = NaN
    x[3] = Infinity
    const out = poisoned(6)
    createMatrix(spec, { isa }).apply(x, out, 2)
    expect([...out]).toEqual([Infinity, Infinity, Infinity, NaN, NaN, NaN])
  })

  it('does nothing for no tokens', () => {
    const out = poisoned(1)
    createMatrix(randomMatrix(1, 32, 3), { isa }).apply(new Float32Array(0), out, 0)
    expect(out[0]).toBeNaN()
  })
})

describe('createMatrix', () => {
  it('refuses a NaN scale with its row and group', () => {
    const spec = randomMatrix(4, 96, 1)
    spec.scales[3 * 2 + 1] = 255
    const at = { tensor: 'scales', row: 2, group: 1 }
    expect(() => createMatrix(spec)).toThrow(expect.objectContaining({ code: 'ERR_MXFP4_SCALE_NAN', at }))
  })

  it('refuses wrong shapes, layouts, arrays, pools and instruction sets', () => {
    const spec = randomMatrix(2, 32, 1)
    const refused = (change: object, options: object, code: string) =>
      expect(() => createMatrix({ ...spec, ...change }, options)).toThrow(expect.objectContaining({ code }))
    refused({ cols: 48 }, {}, 'ERR_MXFP4_SHAPE')
    refused({ layout: 'ggml' }, {}, 'ERR_MXFP4_LAYOUT')
    refused({ rows: 0 }, {}, 'ERR_OUT_OF_RANGE')
    refused({ rows: 3 }, {}, 'ERR_OUT_OF_RANGE')
    refused({ scales: spec.scales.subarray(1) }, {}, 'ERR_OUT_OF_RANGE')
    refused({ packed: { region: { handle: {}, bytes: 64 }, offset: 0 } }, {}, 'ERR_INVALID_HANDLE')
    refused({ packed: { region: { handle: {}, bytes: 64 }, offset: 33 } }, {}, 'ERR_OUT_OF_RANGE')
    for (const pool of [{ handle: {} }, 5, null, 'pool'])
      refused({}, { pool: pool as never }, 'ERR_INVALID_HANDLE')
    refused({}, { isa: 'sse9' }, 'ERR_ISA_UNSUPPORTED')
  })

  it('refuses short and foreign arrays', () => {
    const matrix = createMatrix(randomMatrix(2, 32, 1))
    const refused = (x: unknown, out: unknown, tokens: number, code: string) =>
      expect(() => matrix.apply(x as Float32Array, out as Float32Array, tokens)).toThrow(
        expect.objectContaining({ code })
      )
    refused(poisoned(63), poisoned(4), 2, 'ERR_OUT_OF_RANGE')
    refused(poisoned(64), poisoned(3), 2, 'ERR_OUT_OF_RANGE')
    refused(poisoned(64), poisoned(4), -1, 'ERR_OUT_OF_RANGE')
    refused(new Float64Array(64), poisoned(4), 2, 'ERR_INVALID_ARG_TYPE')
  })

  it('refuses an output over its input, and weights that were transferred away', () => {
    const spec = randomMatrix(2, 32, 1)
    const matrix = createMatrix(spec)
    const both = new Float32Array(40)
    const over = () => matrix.apply(both, both.subarray(31), 1)
    expect(over).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }))
    matrix.apply(both, both.subarray(32), 1)
    structuredClone(spec.packed, { transfer: [spec.packed.buffer as ArrayBuffer] })
    const gone = () => matrix.apply(both, poisoned(2), 1)
    expect(gone).toThrow(expect.objectContaining({ code: 'ERR_WEIGHTS_DETACHED' }))
  })

  it('says so when its pool was closed', async () => {
    const { createPool } = await import('@k3/task-pool')
    const pool = createPool({ threads: 2 })
    const matrix = createMatrix(randomMatrix(2, 32, 1), { pool })
    pool.close()
    expect(() => matrix.apply(new Float32Array(32), poisoned(2), 1)).toThrow(
      expect.objectContaining({ code: 'ERR_TASK_POOL_CLOSED' })
    )
  })
})

const misalignedFloats = (x: Float32Array): Float32Array => {
  const copy = new Float32Array(x.length + 1).subarray(1)
  copy.set(x)
  return copy
}

/** W x for each token alone on the scalar path. */
const oneByOne = (spec: ReturnType<typeof randomMatrix>, x: Float32Array, tokens: number): Float32Array => {
  const matrix = createMatrix(spec, { isa: 'scalar' })
  const out = poisoned(tokens * spec.rows)
  for (let t = 0; t < tokens; t++) matrix.apply(x.subarray(t * spec.cols), out.subarray(t * spec.rows), 1)
  return out
}

/** W x in the order of docs/NUMERICS.md, by the test's own arithmetic. */
const documented = (spec: ReturnType<typeof randomMatrix>, x: Float32Array, tokens: number): Float32Array => {
  const { rows, cols } = spec
  const values = poisoned(rows * cols)
  decode(spec.packed, new Uint8Array(spec.scales.length).fill(127), { rows, cols }, values)
  const scales = Float32Array.from(spec.scales, (s) => 2 ** (s - 127))
  return Float32Array.from({ length: tokens * rows }, (_, i) => {
    const [t, r] = [Math.floor(i / rows), i % rows]
    const row = values.subarray(r * cols, (r + 1) * cols)
    const groups = scales.subarray((r * cols) / 32, ((r + 1) * cols) / 32)
    return dot(row, groups, x.subarray(t * cols, (t + 1) * cols))
  })
}
