import { createPool, type TaskPool } from '@k3/task-pool'
import { afterAll, describe, expect, it } from 'vitest'
import { gaussian, poisoned, sameBits, words } from '../../native-kit/test-kit/arrays.js'
import { deviation, goldens } from '../../native-kit/test-kit/goldens.js'
import { createLinear, createLinearGroup, supportedIsas, widen } from '../src/index.js'
import { bf16Value, multiply } from '../src/reference.js'

const pools = [1, 2, 3, 4].map((threads) => createPool({ threads }))
afterAll(() => {
  for (const pool of pools) pool.close()
})

/** Seeded finite bf16 numbers between 2^-8 and 2^2 in magnitude. */
const bf16 = (length: number, seed: number) => {
  const next = words(seed)
  return Uint16Array.from({ length }, () => {
    const word = next()
    return ((word & 1) << 15) | ((119 + ((word >>> 1) % 10)) << 7) | (word >>> 25)
  })
}

describe.each(supportedIsas())('createLinear on %s', (isa) => {
  it.each(goldens('bf16_matvec').map((g) => [g.row.name, g] as const))('agrees with %s', (_, golden) => {
    const { rows, cols, batch } = golden.row.dims
    const weights = golden.tensor<Uint16Array>('weight')
    const out = poisoned(batch! * rows!)
    createLinear({ weights, rows: rows!, cols: cols! }, { isa }).apply(golden.tensor('x'), out, batch!)
    expect(golden.complaint('out.y', out)).toBeNull()
  })
})

describe('createLinear', () => {
  // eight times the error of plain float32 on the longest rows, as the manifest says for bf16_matvec
  const relativeL2 = 4e-6

  it.each([1, 7, 15, 16, 17, 63, 64, 65, 513, 7168])(
    'agrees with double precision for %i columns',
    (cols) => {
      for (const rows of cols === 7168 ? [3] : [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
        const weights = bf16(rows * cols, rows)
        const x = gaussian(3 * cols, cols)
        const out = poisoned(3 * rows)
        createLinear({ weights, rows, cols }).apply(x, out, 3)
        expect(deviation(out, multiply(weights, x, cols)).relativeL2).toBeLessThan(relativeL2)
      }
    }
  )

  const shapes = [1, 7, 15, 16, 17, 63, 64, 65, 511, 512, 513, 1040, 7168].flatMap((cols) =>
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 37]
      .filter((rows) => cols < 1000 || rows > 8)
      .map((rows) => [rows, cols] as const)
  )
  shapes.push([149, 513]) // enough for one token to be worth a fork
  const counts = [1, 2, 3, 5, 6, 7, 13, 32, 33, 64]

  it.each(shapes)(
    'gives the same bits on every ISA and pool for any number of tokens, %i × %i',
    (rows, cols) => {
      const weights = bf16(rows * cols, rows + cols)
      const x = gaussian(64 * cols, cols)
      const want = poisoned(64 * rows)
      const scalar = createLinear({ weights, rows, cols }, { isa: 'scalar' })
      for (let t = 0; t < 64; t++) {
        scalar.apply(x.subarray(t * cols), want.subarray(t * rows), 1)
      }
      expect(want.some(Number.isNaN)).toBe(false)
      for (const isa of supportedIsas()) {
        for (const pool of [undefined, ...pools] as (TaskPool | undefined)[]) {
          const linear = createLinear({ weights, rows, cols }, pool ? { isa, pool } : { isa })
          for (const tokens of counts) {
            const out = poisoned(64 * rows)
            linear.apply(x, out, tokens)
            expect(sameBits(out.subarray(0, tokens * rows), want.subarray(0, tokens * rows))).toBe(true)
            expect(out.subarray(tokens * rows).every(Number.isNaN)).toBe(true)
          }
        }
      }
    }
  )

  it('reads weights at any byte offset', () => {
    const rows = 9
    const cols = 83
    const weights = bf16(rows * cols, 1)
    const x = gaussian(4 * cols, 2)
    const want = poisoned(4 * rows)
    createLinear({ weights, rows, cols }).apply(x, want, 4)
    for (const isa of supportedIsas()) {
      for (const offset of [1, 2, 3, 8, 13, 63]) {
        const bytes = new Uint8Array(offset + weights.byteLength).fill(0xff)
        bytes.set(new Uint8Array(weights.buffer), offset)
        const out = poisoned(4 * rows)
        createLinear({ weights: bytes.subarray(offset), rows, cols }, { isa }).apply(x, out, 4)
        expect(sameBits(out, want)).toBe(true)
      }
    }
  })

  it('takes inputs and outputs that start anywhere in their buffers', () => {
    const weights = bf16(5 * 33, 1)
    const linear = createLinear({ weights, rows: 5, cols: 33 })
    const x = gaussian(100, 2)
    const out = poisoned(20)
    const want = poisoned(10)
    linear.apply(x.slice(3), want, 2)
    linear.apply(x.subarray(3), out.subarray(7), 2)
    expect(sameBits(out.slice(7, 17), want)).toBe(true)
    expect([...out.subarray(0, 7), ...out.subarray(17)].every(Number.isNaN)).toBe(true)
  })

  it('accepts a matrix without rows and a call without tokens', () => {
    const empty = createLinear({ weights: new Uint16Array(0), rows: 0, cols: 8 }, { pool: pools[1]! })
    empty.apply(gaussian(24, 1), new Float32Array(0), 3)
    const out = poisoned(4)
    createLinear({ weights: bf16(16, 1), rows: 2, cols: 8 }).apply(gaussian(8, 1), out, 0)
    expect(out.every(Number.isNaN)).toBe(true)
  })

  it('hands on NaN and infinity of a weight to its own row only', () => {
    const weights = bf16(3 * 40, 1)
    weights[40 + 33] = 0x7fc0
    weights[80 + 2] = 0x7f80
    const out = poisoned(6)
    createLinear({ weights, rows: 3, cols: 40 }).apply(gaussian(80, 1), out, 2)
    expect(
      [...out].map((y) => (Number.isNaN(y) ? 'nan' : Number.isFinite(y) ? 'finite' : 'infinite'))
    ).toEqual(['finite', 'nan', 'infinite', 'finite', 'nan', 'infinite'])
  })
})

describe('createLinearGroup', () => {
  it('gives each linear the bits it gives alone', () => {
    const cols = 77
    const x = gaussian(13 * cols, 1)
    for (const pool of pools) {
      const linears = [1, 5, 16, 33, 100].map((rows) =>
        createLinear({ weights: bf16(rows * cols, rows), rows, cols }, { pool })
      )
      const group = createLinearGroup(linears)
      for (const tokens of [1, 2, 13]) {
        const outs = linears.map(({ rows }) => poisoned(tokens * rows))
        group.apply(x, outs, tokens)
        for (const [i, linear] of linears.entries()) {
          const want = poisoned(tokens * linear.rows)
          linear.apply(x, want, tokens)
          expect(sameBits(outs[i]!, want)).toBe(true)
        }
      }
    }
  })
})

describe('widen', () => {
  it('gives the exact value of every bf16 number', () => {
    const all = Uint16Array.from({ length: 65536 }, (_, i) => i)
    const wide = widen(all, all.length)
    for (const h of all) expect(Object.is(wide[h], bf16Value(h)) || Number.isNaN(wide[h]!)).toBe(true)
    expect(widen(all, 3)).toHaveLength(3)
  })

  it('reads from any byte offset', () => {
    const bytes = Uint8Array.of(0, 0x80, 0x3f, 0x00, 0xc0)
    expect([...widen(bytes.subarray(1), 2)]).toEqual([1, -2])
  })
})
