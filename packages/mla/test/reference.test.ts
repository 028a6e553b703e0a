import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { excess, limitOf, type Nudge } from '../../native-kit/test-kit/conditioning.js'
import { deviation, goldens, widened } from '../../native-kit/test-kit/goldens.js'
import { latentRowsReference, mlaReference } from '../src/reference.js'
import { type Run, run, type Sequence, sequenceOf, usedRows } from './layer.js'

// what the manifest allows the whole layer, projections included
const relativeL2 = Math.max(...goldens('mla_layer').map(({ row }) => row.outputs['out.y_cache_64']!.rel_l2!))

// the softmax and the gate. Seen in 10,000 random layers: 5.5
const LIMIT = limitOf({ exps: 1, sigmoids: 1 })

const AS_IT_IS: Nudge = (x) => x

const rowsOf =
  ({ shape, parameters, inputs }: Sequence) =>
  (nudge: Nudge) =>
    latentRowsReference(shape, nudge(parameters.kvNorm), nudge(inputs.kv))

const outputOf =
  ({ shape, parameters, inputs, tokens }: Sequence, rows: (nudge: Nudge) => Float64Array) =>
  (nudge: Nudge) => {
    const kvUp = nudge(widened(parameters.kvUp as Uint16Array))
    const nudged = { ...inputs, queries: nudge(inputs.queries), gate: nudge(inputs.gate) }
    return mlaReference(shape, kvUp, rows(nudge), nudged, tokens)
  }

// the output is judged over the rows as they were cached, and these by themselves
const excessOf = (sequence: Sequence, { out, cache }: Run) => {
  const cached = (nudge: Nudge) => Float64Array.from(nudge(usedRows(cache)))
  return Math.max(excess(usedRows(cache), rowsOf(sequence)), excess(out, outputOf(sequence, cached)))
}

const expectAgreement = (sizes: readonly number[], tokens: number, lengths: readonly number[]) => {
  const sequence = sequenceOf(sizes, tokens)
  const got = run(sequence, lengths, {})
  const rows = rowsOf(sequence)(AS_IT_IS)
  expect(deviation(usedRows(got.cache), rows).relativeL2).toBeLessThan(relativeL2)
  const want = outputOf(sequence, () => rows)(AS_IT_IS)
  expect(deviation(got.out, want).relativeL2).toBeLessThan(relativeL2)
  expect(excessOf(sequence, got)).toBeLessThan(LIMIT)
}

describe('attention agrees with double precision', () => {
  it.each([1, 2, 63, 64, 65, 130])('over %i positions', (tokens) => {
    expectAgreement([3, 16, 8, 16, 32], tokens, [tokens])
    expectAgreement([2, 7, 0, 9, 33], tokens, [1])
  })

  it('where the only sum cancels, and a correct rounding is far from the result', () => {
    const sequence = sequenceOf([1, 16, 0, 1, 39], 1)
    const got = run(sequence, [1], {})
    const want = outputOf(sequence, rowsOf(sequence))(AS_IT_IS)
    expect(deviation(got.out, want).relativeL2).toBeGreaterThan(5 * relativeL2)
    expect(excessOf(sequence, got)).toBeLessThan(LIMIT)
  })

  it('for any sizes and numbers', () => {
    const to = (max: number) => fc.integer({ min: 1, max })
    const sizes = fc.tuple(to(7), to(20), fc.integer({ min: 0, max: 20 }), to(20), to(70))
    fc.assert(
      fc.property(sizes, to(20), to(100_000), (shape, tokens, seed) => {
        const sequence = sequenceOf(shape, tokens, seed)
        expect(excessOf(sequence, run(sequence, [tokens], {}))).toBeLessThan(LIMIT)
      }),
      { numRuns: 25 }
    )
  })
})

describe('the limit is narrow enough to see', () => {
  const more = (x: Float32Array) => x.map((v) => v * (1 + 3e-6))
  // the kernel is given a weight less: the last of the first key or of the last value
  const without = (which: 'key' | 'value') => (sequence: Sequence) => {
    const { latentDim } = sequence.shape
    const kvUp = (sequence.parameters.kvUp as Uint16Array).slice()
    kvUp[which === 'key' ? latentDim - 1 : kvUp.length - 1] = 0
    return { ...sequence, parameters: { ...sequence.parameters, kvUp } }
  }
  const faults: Readonly<Record<string, (sequence: Sequence) => Sequence>> = {
    'a scale of the scores 3e-6 off': (s) => ({
      ...s,
      inputs: { ...s.inputs, queries: more(s.inputs.queries) }
    }),
    'a gain of the norm 3e-6 off': (s) => ({
      ...s,
      parameters: { ...s.parameters, kvNorm: more(s.parameters.kvNorm) }
    }),
    'a gate 3e-6 off': (s) => ({ ...s, inputs: { ...s.inputs, gate: more(s.inputs.gate) } }),
    'an epsilon of 4e-6': (s) => ({ ...s, shape: { ...s.shape, normEps: 4e-6 } }),
    'a missing term of a score': without('key'),
    'a missing term of a value': without('value')
  }
  const sizes = [
    [1, 4, 0, 1, 9],
    [3, 16, 8, 16, 32],
    [7, 20, 20, 20, 70]
  ]
  it.each(Object.entries(faults))('%s', (_, fault) => {
    for (const size of sizes) {
      const sequence = sequenceOf(size, 9)
      expect(excessOf(sequence, run(sequence, [9], {}))).toBeLessThan(LIMIT)
      expect(excessOf(sequence, run(fault(sequence), [9], {}))).toBeGreaterThan(LIMIT)
    }
  })
})
