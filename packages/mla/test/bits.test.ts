import { describe, expect, it } from 'vitest'
import { sameBits } from '../../native-kit/test-kit/arrays.js'
import { supportedIsas } from '../src/index.js'
import { pools, type Run, run, sequenceOf, usedRows } from './layer.js'

const threads = pools()

const expectSame = (got: Run, want: Run) => {
  expect(sameBits(got.out, want.out)).toBe(true)
  expect(sameBits(usedRows(got.cache), usedRows(want.cache))).toBe(true)
}

describe('the bits of attention', () => {
  it.each([
    [1, 1, 0, 1, 1],
    [1, 7, 0, 7, 32],
    [3, 16, 8, 16, 32],
    [5, 17, 8, 9, 33],
    [5, 6, 3, 33, 40],
    [13, 8, 8, 5, 48],
    [2, 33, 1, 64, 64],
    [7, 16, 16, 17, 130]
  ])(
    'are the same on every ISA and pool and for every cut, %i heads of %i + %i and %i over %i',
    (...sizes) => {
      const tokens = 137
      const sequence = sequenceOf(sizes, tokens)
      const want = run(sequence, [1], { isa: 'scalar' })
      expect(want.out.some(Number.isNaN)).toBe(false)
      for (const isa of supportedIsas()) {
        for (const pool of threads) {
          for (const lengths of [[1], [2, 3], [7], [63, 1, 1, 65, 7], [64, 66, 7], [tokens]])
            expectSame(run(sequence, lengths, pool ? { isa, pool } : { isa }), want)
        }
      }
    }
  )

  it('are the same on every ISA and pool at the released size', () => {
    const sequence = sequenceOf([96, 128, 64, 128, 512], 9)
    const want = run(sequence, [1], { isa: 'scalar' })
    expect(want.out.some(Number.isNaN)).toBe(false)
    for (const isa of supportedIsas()) {
      for (const pool of threads)
        expectSame(run(sequence, [pool ? 9 : 4], pool ? { isa, pool } : { isa }), want)
    }
  })
})
