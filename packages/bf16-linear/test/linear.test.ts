import { describe, expect, it } from 'vitest'
import { createLinear, supportedIsas } from '../src/index.js'

describe('createLinear', () => {
  it('gives the same bits on every ISA and for every number of tokens', () => {
    const rows = 37,
      cols = 77,
      tokens = 13
    const weights = Uint16Array.from({ length: rows * cols }, (_, i) => ((i * 40503) & 0x807f) | 0x3f00)
    const x = Float32Array.from({ length: tokens * cols }, (_, i) => Math.sin(i))
    const want = new Float32Array(tokens * rows).fill(NaN)
    createLinear({ weights, rows, cols }, { isa: 'scalar' }).apply(x, want, tokens)
    for (const isa of supportedIsas()) {
      const linear = createLinear({ weights, rows, cols }, { isa })
      const many = new Float32Array(tokens * rows).fill(NaN)
      linear.apply(x, many, tokens)
      expect(many).toEqual(want)
    }
  })
})
