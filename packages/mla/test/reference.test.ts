import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deviation, goldens, widened } from '../../native-kit/test-kit/goldens.js'
import { latentRowsReference, mlaReference } from '../src/reference.js'
import { run, sequenceOf, usedRows } from './layer.js'

// what the manifest allows the whole layer, projections included
const relativeL2 = Math.max(...goldens('mla_layer').map(({ row }) => row.outputs['out.y_cache_64']!.rel_l2!))

const expectAgreement = (sizes: readonly number[], tokens: number, lengths: readonly number[]) => {
  const sequence = sequenceOf(sizes, tokens)
  const { shape, parameters, inputs } = sequence
  const { out, cache } = run(sequence, lengths, {})
  const rows = latentRowsReference(shape, parameters.kvNorm, inputs.kv)
  expect(deviation(usedRows(cache), rows).relativeL2).toBeLessThan(relativeL2)
  const want = mlaReference(shape, widened(parameters.kvUp as Uint16Array), rows, inputs, tokens)
  expect(deviation(out, want).relativeL2).toBeLessThan(relativeL2)
}

describe('attention agrees with double precision', () => {
  it.each([1, 2, 63, 64, 65, 130])('over %i positions', (tokens) => {
    expectAgreement([3, 16, 8, 16, 32], tokens, [tokens])
    expectAgreement([2, 7, 0, 9, 33], tokens, [1])
  })

  it('for any sizes', () => {
    const to = (max: number) => fc.integer({ min: 1, max })
    const sizes = fc.tuple(to(7), to(20), fc.integer({ min: 0, max: 20 }), to(20), to(70))
    fc.assert(
      fc.property(sizes, to(20), (shape, tokens) => expectAgreement(shape, tokens, [tokens])),
      { numRuns: 25 }
    )
  })
})
