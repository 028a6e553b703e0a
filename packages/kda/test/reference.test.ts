import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { poisoned } from '../../native-kit/test-kit/arrays.js'
import { deviation, goldens } from '../../native-kit/test-kit/goldens.js'
import { createKda, type KdaParameters, type KdaShape } from '../src/index.js'
import { kdaReference } from '../src/reference.js'
import { inputsOf, parametersOf, shapeOf, startOf } from './layer.js'

// what the manifest allows the whole layer, projections included
const relativeL2 = Math.max(...goldens('kda_layer').map(({ row }) => row.outputs['out.y']!.rel_l2!))

const expectAgreement = (shape: KdaShape, parameters: KdaParameters, inputs = inputsOf(shape, 9)) => {
  const tokens = 9
  const kda = createKda(shape, parameters)
  const state = startOf(kda.createState())
  const want = kdaReference(shape, parameters, inputs, state.copy(), tokens)
  const out = poisoned(tokens * shape.heads * shape.headDim)
  kda.forward(inputs, state, out, tokens)
  expect(deviation(out, want.out).relativeL2).toBeLessThan(relativeL2)
  expect(deviation(state.recurrence, want.recurrence).relativeL2).toBeLessThan(relativeL2)
}

describe('a layer agrees with double precision', () => {
  it.each([
    [1, 1, 1],
    [3, 7, 2],
    [1, 16, 3],
    [5, 17, 5],
    [3, 33, 4],
    [2, 64, 4],
    [1, 128, 4]
  ])('for %i heads of %i with %i taps', (heads, dim, taps) => {
    const shape = shapeOf(heads, dim, taps)
    expectAgreement(shape, parametersOf(shape))
  })

  it('for any sizes', () => {
    const sizes = fc.tuple(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 5 })
    )
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 1000 }), ([heads, dim, taps], seed) => {
        const shape = shapeOf(heads, dim, taps)
        expectAgreement(shape, parametersOf(shape, seed))
      }),
      // seeded, so that a failure is a change: heads of 1 can cancel to where the norm magnifies a rounding beyond the limit
      // (2 heads of 1, 2 taps, parameters 573: 6.9e-6)
      { numRuns: 25, seed: 1 }
    )
  })

  it.each([
    ['near their bound', 6, 40],
    ['near zero', 6, -40],
    ['in the middle', -10, 0]
  ])('with decays %s', (_, aLog, z) => {
    const shape = shapeOf(2, 20, 4)
    const inputs = inputsOf(shape, 9)
    inputs.decay.fill(z)
    expectAgreement(shape, { ...parametersOf(shape), aLog: new Float32Array(2).fill(aLog) }, inputs)
  })

  it('with another bound and another epsilon', () => {
    const shape = { ...shapeOf(2, 20, 4), gateLowerBound: -0.25, normEps: 0.5 }
    expectAgreement(shape, parametersOf(shape))
  })
})

describe('decays', () => {
  it('stay between the bound and zero, and reach both', () => {
    const shape = shapeOf(1, 8, 1)
    const kda = createKda(shape, {
      ...parametersOf(shape),
      aLog: Float32Array.of(3),
      dtBias: new Float32Array(8)
    })
    const g = poisoned(8)
    kda.decayGate(Float32Array.of(-Infinity, -1e30, -5, -0, 0, 5, 1e30, Infinity), g, 1)
    expect(g[0]).toBe(-0)
    expect(g[1]).toBe(-0)
    expect(g[2]).toBeLessThan(0)
    expect(g[2]).toBeGreaterThan(-1e-40)
    expect([g[3], g[4]]).toEqual([-2.5, -2.5])
    expect([...g.subarray(5)]).toEqual([-5, -5, -5])
  })
})
