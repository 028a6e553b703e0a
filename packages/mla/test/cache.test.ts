import { describe, expect, it } from 'vitest'
import { poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import { createMla, MlaCache, supportedIsas } from '../src/index.js'
import { native } from '../src/native.js'
import { rowsFrom, run, sequenceOf, usedRows } from './layer.js'

const sequence = sequenceOf([3, 8, 4, 8, 20], 80)
const { shape, parameters, inputs } = sequence
const mla = createMla(shape, parameters)
const width = 24
const row = 24
const outOfRange = expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' })

const feed = (cache: MlaCache, from: number, count: number) => {
  const out = poisoned(count * width)
  mla.forward(rowsFrom(inputs, shape, from), cache, out, count)
  return out
}

describe('a cache', () => {
  it('is empty at first and takes one row a token', () => {
    const cache = mla.createCache()
    expect([cache.length, cache.bytes, cache.rowLength]).toEqual([0, 0, row])
    feed(cache, 0, 3)
    expect([cache.length, cache.bytes]).toEqual([3, 3 * row * 4])
    feed(cache, 3, 0)
    expect(cache.length).toBe(3)
  })

  it('keeps the shared key part as projected', () => {
    const cache = mla.createCache()
    feed(cache, 0, 5)
    for (let t = 0; t < 5; t++) {
      const shared = cache.rows.slice(t * row + 20, (t + 1) * row)
      expect(sameBits(shared, inputs.kv.slice(t * row + 20, (t + 1) * row))).toBe(true)
    }
  })

  it('grows by doubling, keeping its rows', () => {
    const cache = mla.createCache()
    const sizes = new Set<number>()
    for (let t = 0; t < 80; t++) {
      feed(cache, t, 1)
      sizes.add(cache.bytes)
    }
    expect(sizes.size).toBeLessThan(9)
    expect(sameBits(usedRows(cache), usedRows(run(sequence, [80], {}).cache))).toBe(true)
  })

  it('does not move when room was reserved', () => {
    const cache = mla.createCache()
    cache.reserve(80)
    const { rows } = cache
    feed(cache, 0, 80)
    expect(cache.rows).toBe(rows)
  })

  it('keeps its rows when it grows beyond 2 MiB, and lies on memory of its own there', () => {
    const cache = mla.createCache()
    feed(cache, 0, 40)
    cache.reserve(22_000) // 2.1 MB
    expect(cache.rows.slice(40 * row).every((x) => x === 0)).toBe(true)
    if (native().hugeFloats(2 ** 19) !== undefined) expect(cache.rows.byteOffset).toBe(0)
    feed(cache, 40, 40)
    expect(sameBits(usedRows(cache), usedRows(run(sequence, [80], {}).cache))).toBe(true)
  })

  it('starts its rows at the border of a cache line, and so does its copy', () => {
    const cache = mla.createCache()
    feed(cache, 0, 50)
    for (const { rows } of [cache, cache.copy()]) expect(native().settleFloats(rows)).toBe(0)
    expect(native().settleFloats(cache.rows.subarray(3))).toBe(13)
  })

  it('continues from a copy, and the copy is independent', () => {
    const cache = mla.createCache()
    feed(cache, 0, 66)
    const copy = cache.copy()
    expect([copy.length, copy.bytes]).toEqual([66, 66 * row * 4])
    const want = feed(cache, 66, 14)
    expect(sameBits(feed(copy, 66, 14), want)).toBe(true)
    copy.rows.fill(NaN)
    expect(usedRows(cache).some(Number.isNaN)).toBe(false)
  })

  it('continues from saved rows', () => {
    const cache = mla.createCache()
    feed(cache, 0, 66)
    const saved = Uint8Array.from(new Uint8Array(cache.rows.buffer, cache.rows.byteOffset, 66 * row * 4))
    const want = feed(cache, 66, 14)
    const restored = new MlaCache(row, new Float32Array(saved.buffer), 66)
    expect(sameBits(feed(restored, 66, 14), want)).toBe(true)
  })

  it('forgets what it is cut back to', () => {
    const cache = mla.createCache()
    feed(cache, 0, 40)
    const want = feed(cache, 40, 30)
    cache.truncate(50)
    feed(cache, 0, 10)
    cache.truncate(40)
    expect(sameBits(feed(cache, 40, 30), want)).toBe(true)
  })

  it('refuses rows it has no room for, or does not have', () => {
    const cache = mla.createCache()
    feed(cache, 0, 2)
    for (const call of [
      () => cache.truncate(3),
      () => cache.truncate(-1),
      () => cache.advance(1),
      () => cache.advance(-1),
      () => cache.reserve(0.5),
      () => new MlaCache(row, new Float32Array(2 * row - 1), 2),
      () => new MlaCache(row, new Float32Array(row), -1),
      () => new MlaCache(0, new Float32Array(row), 0)
    ])
      expect(call).toThrow(outOfRange)
    const doubles = new Float64Array(row) as unknown as Float32Array
    expect(() => new MlaCache(row, doubles, 1)).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_ARG_TYPE' })
    )
    expect(cache.length).toBe(2)
  })
})

describe.each(supportedIsas())('a call on %s', (isa) => {
  const bound = createMla(shape, parameters, { isa })

  it('writes the rows of its tokens and nothing behind them', () => {
    const out = new Float32Array(10 * width).fill(-7)
    const cache = bound.createCache()
    cache.reserve(10)
    cache.rows.fill(-7)
    bound.forward(inputs, cache, out, 5)
    for (const [rows, length] of [
      [out, 5 * width],
      [cache.rows, 5 * row]
    ] as const) {
      expect(rows.subarray(0, length).some((x) => x === -7 || Number.isNaN(x))).toBe(false)
      expect(rows.subarray(length).every((x) => x === -7)).toBe(true)
    }
  })

  it('leaves its inputs alone', () => {
    const before = [inputs.queries, inputs.kv, inputs.gate].map((x) => x.slice())
    bound.forward(inputs, bound.createCache(), poisoned(80 * width), 80)
    for (const [i, x] of [inputs.queries, inputs.kv, inputs.gate].entries())
      expect(sameBits(x, before[i]!)).toBe(true)
  })

  it('hands NaN of a query or a gate on, in its own token and head', () => {
    const clean = poisoned(10 * width)
    bound.forward(inputs, bound.createCache(), clean, 10)
    for (const [name, at] of [
      ['queries', (4 * 3 + 1) * 12 + 3],
      ['gate', 4 * width + 8 + 3]
    ] as const) {
      const bad = { ...inputs, [name]: inputs[name].slice() }
      bad[name][at] = NaN
      const out = poisoned(10 * width)
      bound.forward(bad, bound.createCache(), out, 10)
      const nans = [...out.keys()].filter((i) => Number.isNaN(out[i]!))
      const first = 4 * width + 8
      const want = name === 'gate' ? [first + 3] : Array.from({ length: 8 }, (_, i) => first + i)
      expect(nans).toEqual(want)
      expect(out.every((x, i) => Number.isNaN(x) || Object.is(x, clean[i]))).toBe(true)
    }
  })

  it('hands NaN and infinity of a cached row on to every later token, and ends', () => {
    for (const value of [NaN, Infinity]) {
      const bad = { ...inputs, kv: inputs.kv.slice() }
      bad.kv[70 * row + 2] = value
      const out = poisoned(80 * width)
      bound.forward(bad, bound.createCache(), out, 80)
      expect(out.subarray(0, 70 * width).some(Number.isNaN)).toBe(false)
      expect(out.subarray(70 * width).every(Number.isNaN)).toBe(true)
    }
  })

  it('gives one position its own value, whatever the scores', () => {
    const huge = { ...inputs, queries: inputs.queries.map((x) => 1e18 * x) }
    const a = poisoned(width)
    const b = poisoned(width)
    bound.forward(inputs, bound.createCache(), a, 1)
    bound.forward(huge, bound.createCache(), b, 1)
    expect(sameBits(a, b)).toBe(true)
  })
})
