import { describe, expect, it } from 'vitest'
import { movedBy, poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import { createMla, type MlaInputs, supportedIsas } from '../src/index.js'
import { inputsOf, parametersOf, shapeOf } from './layer.js'

const moved = (by: number, { queries, kv, gate }: MlaInputs): MlaInputs => ({
  queries: movedBy(by, queries),
  kv: movedBy(by + 1, kv),
  gate: movedBy(by + 2, gate)
})

describe.each(supportedIsas())('attention on %s', (isa) => {
  it.each([
    [1, 1, 0, 1, 1],
    [3, 16, 8, 16, 32],
    [7, 17, 3, 9, 33],
    [2, 33, 1, 64, 64]
  ])('reads and writes numbers anywhere, %i heads of %i + %i and %i over %i', (...sizes) => {
    const shape = shapeOf(sizes)
    const tokens = 67
    const { kvNorm, kvUp } = parametersOf(shape)
    const inputs = inputsOf(shape, tokens)
    const runAt = (by: number) => {
      const mla = createMla(shape, { kvNorm: movedBy(by, kvNorm), kvUp }, { isa })
      const out = movedBy(by, poisoned(tokens * shape.heads * shape.valueDim))
      mla.forward(moved(by, inputs), mla.createCache(), out, tokens)
      return out
    }
    const want = runAt(0)
    expect(want.some(Number.isNaN)).toBe(false)
    for (const by of [1, 2, 3, 7, 13]) expect(sameBits(runAt(by), want)).toBe(true)
  })

  it('does nothing for no tokens', () => {
    const shape = shapeOf([2, 5, 3, 7, 9])
    const mla = createMla(shape, parametersOf(shape), { isa })
    const [cache, out] = [mla.createCache(), poisoned(3)]
    mla.forward(inputsOf(shape, 0), cache, out, 0)
    expect(cache.length).toBe(0)
    expect(out.every(Number.isNaN)).toBe(true)
  })
})
