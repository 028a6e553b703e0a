import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bitsOf, poisoned } from '../../native-kit/test-kit/arrays.js'
import { goldens } from '../../native-kit/test-kit/goldens.js'
import { decode, encode, Mxfp4Error } from '../src/index.js'
import { weightAt } from '../src/reference.js'
import { firstDifference, misaligned, randomBytes } from './arrays.js'

const allBytes = Uint8Array.from({ length: 256 }, (_, i) => i)
const thrown = (run: () => void): Mxfp4Error => {
  try {
    run()
  } catch (error) {
    if (error instanceof Mxfp4Error) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('decode', () => {
  const [plain, nan] = goldens('mxfp4_decode')

  it('gives the golden numbers exactly', () => {
    const { rows, cols } = plain!.row.dims
    const out = poisoned(rows! * cols!)
    const packed = plain!.tensor<Uint8Array>('weight_packed')
    decode(packed, plain!.tensor<Uint8Array>('weight_scale'), { rows: rows!, cols: cols! }, out)
    expect(bitsOf(out)).toEqual(bitsOf(Float32Array.from(plain!.tensor<Float64Array>('out.w'))))
  })

  it('refuses the golden whose scale is 255', () => {
    const packed = nan!.tensor<Uint8Array>('weight_packed')
    const scales = nan!.tensor<Uint8Array>('weight_scale')
    const shape = { rows: scales.length, cols: 32 }
    const error = thrown(() => decode(packed, scales, shape, poisoned(2 * packed.length)))
    expect(error.code).toBe('ERR_MXFP4_SCALE_NAN')
  })

  it('gives all bytes at all scales what double precision gives, subnormal and infinite ends included', () => {
    const scales = new Uint8Array(255 * 16)
    const packed = new Uint8Array(255 * 256)
    for (let s = 0; s < 255; s++) {
      packed.set(allBytes, s * 256)
      scales.fill(s, s * 16, s * 16 + 16)
    }
    const out = poisoned(255 * 512)
    decode(packed, scales, { rows: 255, cols: 512 }, out)
    const want = Float32Array.from(out, (_, i) => weightAt(packed, scales, 512, Math.floor(i / 512), i % 512))
    expect(firstDifference(out, want)).toBe(-1)
    expect(out[1]).toBe(0)
    expect(out[2]).toBe(2 ** -128)
    expect(out[out.length - 1]).toBe(-Infinity)
  })

  it('knows the published bytes of a released block', () => {
    const packed = Uint8Array.of(22, 185, 206, 35, ...new Uint8Array(12))
    const out = poisoned(32)
    decode(packed, Uint8Array.of(121), { rows: 1, cols: 32 }, out)
    const want = [0.0625, 0.0078125, -0.0078125, -0.0234375, -0.0625, -0.03125, 0.0234375, 0.015625]
    expect([...out.subarray(0, 8)]).toEqual(want)
  })

  it('reads gpt-oss blocks and scales, the same bytes under another shape, at any address', () => {
    const packed = randomBytes(3 * 32, 1)
    const scales = randomBytes(3 * 2, 2).map((byte) => byte >> 1)
    const want = poisoned(3 * 64)
    const out = poisoned(3 * 64)
    decode(packed, scales, { rows: 3, cols: 64 }, want)
    const shape = { rows: 3, cols: 64, layout: 'gpt-oss' } as const
    decode(misaligned(packed, 3), misaligned(scales, 1), shape, out)
    expect(bitsOf(out)).toEqual(bitsOf(want))
  })

  it('names tensor, row and group of a NaN scale', () => {
    const scales = new Uint8Array(5 * 3)
    scales[3 * 3 + 2] = 255
    const error = thrown(() => decode(new Uint8Array(5 * 48), scales, { rows: 5, cols: 96 }, poisoned(480)))
    expect(error).toMatchObject({ code: 'ERR_MXFP4_SCALE_NAN', at: { tensor: 'scales', row: 3, group: 2 } })
    expect(error.message).toContain('columns 64 to 95')
  })

  it('refuses shapes, layouts and arrays that do not fit', () => {
    const run = (rows: number, cols: number, layout?: string) => () =>
      decode(new Uint8Array(16), new Uint8Array(1), { rows, cols, layout: layout as never }, poisoned(32))
    expect(thrown(run(1, 31)).code).toBe('ERR_MXFP4_SHAPE')
    expect(thrown(run(1, 32, 'gguf')).code).toBe('ERR_MXFP4_LAYOUT')
    for (const wrong of [run(0, 32), run(1, -32), run(1.5, 32), run(2, 32), run(1, 64)])
      expect(wrong).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }))
    expect(run(1, 32)).not.toThrow()
  })
})

const encodeOne = (value: number, scaleMagnitude = 4): number => {
  const values = new Float32Array(32)
  values[0] = scaleMagnitude
  values[1] = value
  const { packed, scales } = encode(values, { rows: 1, cols: 32 })
  const out = poisoned(32)
  decode(packed, scales, { rows: 1, cols: 32 }, out)
  return out[1]!
}

describe('encode', () => {
  it('rounds to nearest, ties to the even code', () => {
    const pairs = [
      [0.25, 0],
      [0.25000006, 0.5],
      [0.5, 0.5],
      [0.74, 0.5],
      [0.75, 1],
      [1.25, 1],
      [1.2500001, 1.5],
      [1.75, 2],
      [2.5, 2],
      [2.5000002, 3],
      [3.5, 4],
      [3.4999998, 3],
      [5, 4],
      [5.0000005, 6],
      [6, 6],
      [7.9999995, 6]
    ] as const
    for (const [value, want] of pairs) {
      expect(encodeOne(value)).toBe(want)
      expect(encodeOne(-value)).toBe(-want)
    }
  })

  it('takes the scale from the exponent of the largest magnitude and stops at both ends', () => {
    const scaleOf = (largest: number) =>
      encode(new Float32Array(32).fill(largest), { rows: 1, cols: 32 }).scales[0]
    expect(scaleOf(4)).toBe(127)
    expect(scaleOf(7.99)).toBe(127)
    expect(scaleOf(8)).toBe(128)
    expect(scaleOf(3.4e38)).toBe(252)
    expect([2 ** -124, 2 ** -125, 2 ** -126, 2 ** -149, 0].map(scaleOf)).toEqual([1, 0, 0, 0, 0])
  })

  it('gives back every representable value', () => {
    const codes = fc.uint8Array({ minLength: 32, maxLength: 32 })
    fc.assert(
      fc.property(
        codes,
        fc.integer({ min: 0, max: 254 }),
        fc.integer({ min: 0, max: 254 }),
        (packed, a, b) => {
          const shape = { rows: 1, cols: 64 }
          const values = poisoned(64)
          decode(packed, Uint8Array.of(a, b), shape, values)
          fc.pre(values.every(Number.isFinite))
          const again = encode(values, shape)
          const out = poisoned(64)
          decode(again.packed, again.scales, shape, out)
          expect(firstDifference(out, values)).toBe(-1)
        }
      ),
      { numRuns: 2000, seed: 7 }
    )
  })

  it('is off by at most half a step of the grid, or saturates', () => {
    const numbers = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), {
      minLength: 32,
      maxLength: 32
    })
    fc.assert(
      fc.property(numbers, (list) => {
        const values = Float32Array.from(list)
        const { packed, scales } = encode(values, { rows: 1, cols: 32 })
        const step = 2 ** (scales[0]! - 127)
        values.forEach((value, i) => {
          const scaled = Math.abs(value) / step
          const got = Math.abs(weightAt(packed, scales, 32, 0, i)) / step
          const halfStep = scaled < 2 ? 0.25 : scaled < 4 ? 0.5 : 1
          expect(Math.abs(Math.min(scaled, 6) - got)).toBeLessThanOrEqual(halfStep)
        })
      }),
      { numRuns: 500, seed: 11 }
    )
  })

  it('refuses NaN and infinities and names the place', () => {
    for (const bad of [NaN, Infinity, -Infinity]) {
      const values = new Float32Array(3 * 64)
      values[2 * 64 + 37] = bad
      const error = thrown(() => encode(values, { rows: 3, cols: 64 }))
      expect(error).toMatchObject({
        code: 'ERR_MXFP4_VALUE_NOT_FINITE',
        at: { tensor: 'values', row: 2, group: 1 }
      })
      expect(error.message).toContain('column 37')
    }
  })

  it('refuses another array type and a short one', () => {
    const shape = { rows: 1, cols: 32 }
    expect(() => encode([] as never, shape)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' })
    )
    expect(() => encode(poisoned(31), shape)).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }))
  })
})
