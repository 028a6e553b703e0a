import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { poisoned } from '../../native-kit/test-kit/arrays.js'
import { excess, limitOf, type Nudge } from '../../native-kit/test-kit/conditioning.js'
import { deviation, goldens } from '../../native-kit/test-kit/goldens.js'
import { createKda, type KdaInputs, type KdaParameters, type KdaShape, KdaState } from '../src/index.js'
import { kdaReference } from '../src/reference.js'
import { inputsOf, parametersOf, shapeOf, startOf } from './layer.js'

// what the manifest allows the whole layer, projections included
const relativeL2 = Math.max(...goldens('kda_layer').map(({ row }) => row.outputs['out.y']!.rel_l2!))

// SiLU of q, k and v, beta, the decay, the gate. Seen in 10,000 random layers: 11.4
const LIMIT = limitOf({ exps: 1, sigmoids: 6 })

const TOKENS = 9

interface Layer {
  readonly shape: KdaShape
  readonly parameters: KdaParameters
  readonly inputs: KdaInputs
}

const layerOf = (shape: KdaShape, seed = 1): Layer => ({
  shape,
  parameters: parametersOf(shape, seed),
  inputs: inputsOf(shape, TOKENS, seed + 9)
})

const run = ({ shape, parameters, inputs }: Layer) => {
  const kda = createKda(shape, parameters)
  const state = startOf(kda.createState())
  const out = poisoned(TOKENS * shape.heads * shape.headDim)
  kda.forward(inputs, state, out, TOKENS)
  return { out, recurrence: state.recurrence }
}

const reference = ({ shape, parameters, inputs }: Layer, nudge: Nudge = (x) => x) => {
  const each = <T extends object>(arrays: T): T =>
    Object.fromEntries(Object.entries(arrays).map(([name, x]) => [name, nudge(x)])) as T
  const { recurrence, tails } = startOf(createKda(shape, parameters).createState())
  const state = new KdaState(nudge(recurrence), nudge(tails))
  const gateLowerBound = nudge(Float32Array.of(shape.gateLowerBound))[0]!
  return kdaReference({ ...shape, gateLowerBound }, each(parameters), each(inputs), state, TOKENS)
}

const excessOf = (layer: Layer, got: ReturnType<typeof run>) =>
  excess([...got.out, ...got.recurrence], (nudge) => {
    const { out, recurrence } = reference(layer, nudge)
    return Float64Array.of(...out, ...recurrence)
  })

const expectAgreement = (layer: Layer) => {
  const got = run(layer)
  const want = reference(layer)
  expect(deviation(got.out, want.out).relativeL2).toBeLessThan(relativeL2)
  expect(deviation(got.recurrence, want.recurrence).relativeL2).toBeLessThan(relativeL2)
  expect(excessOf(layer, got)).toBeLessThan(LIMIT)
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
    expectAgreement(layerOf(shapeOf(heads, dim, taps)))
  })

  it('where a norm magnifies the rounding of what cancels', () => {
    const shape = shapeOf(2, 1, 2)
    const layer = { shape, parameters: parametersOf(shape, 573), inputs: inputsOf(shape, TOKENS) }
    const got = run(layer)
    expect(deviation(got.out, reference(layer).out).relativeL2).toBeGreaterThan(relativeL2)
    expect(excessOf(layer, got)).toBeLessThan(LIMIT)
  })

  it('for any sizes and numbers', () => {
    const sizes = fc.tuple(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 5 })
    )
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 100_000 }), ([heads, dim, taps], seed) => {
        const layer = layerOf(shapeOf(heads, dim, taps), seed)
        expect(excessOf(layer, run(layer))).toBeLessThan(LIMIT)
      }),
      { numRuns: 25 }
    )
  })

  it.each([
    ['near their bound', 6, 40],
    ['near zero', 6, -40],
    ['in the middle', -10, 0]
  ])('with decays %s', (_, aLog, z) => {
    const { shape, parameters, inputs } = layerOf(shapeOf(2, 20, 4))
    inputs.decay.fill(z)
    expectAgreement({ shape, inputs, parameters: { ...parameters, aLog: new Float32Array(2).fill(aLog) } })
  })

  it('with another bound and another epsilon', () => {
    expectAgreement(layerOf({ ...shapeOf(2, 20, 4), gateLowerBound: -0.25, normEps: 0.5 }))
  })
})

describe('the limit is narrow enough to see', () => {
  const more = (by: number) => (x: Float32Array) => x.map((v) => v * (1 + by))
  const altered = (name: keyof KdaInputs | keyof KdaParameters, by: (x: Float32Array) => Float32Array) => {
    return ({ shape, parameters, inputs }: Layer): Layer =>
      name in inputs
        ? { shape, parameters, inputs: { ...inputs, [name]: by(inputs[name as keyof KdaInputs]) } }
        : {
            shape,
            inputs,
            parameters: { ...parameters, [name]: by(parameters[name as keyof KdaParameters]) }
          }
  }
  const without = (at: number) => (x: Float32Array) => x.map((v, i) => (i === at ? 0 : v))
  it.each([
    ['a scale of the values 5e-6 off', altered('vConv', more(5e-6))],
    ['a gain of the norm 5e-6 off', altered('oNorm', more(5e-6))],
    ['a gate 5e-6 off', altered('gate', more(5e-6))],
    ['a decay 2e-5 off', altered('decay', more(2e-5))],
    ['a beta 5e-6 off', altered('beta', more(5e-6))],
    ['a missing tap of a query', altered('qConv', without(0))],
    ['a missing value of one token', altered('v', without(2))],
    ['a missing key channel of one token', altered('k', without(2))]
  ])('%s', (what, fault) => {
    // of a key of width 1 the unit vector has the sign alone
    const narrow = what.includes('key') ? 2 : 1
    for (const shape of [shapeOf(2, narrow, 2), shapeOf(3, 7, 2), shapeOf(4, 40, 4)]) {
      const layer = layerOf(shape)
      expect(excessOf(layer, run(layer))).toBeLessThan(LIMIT)
      expect(excessOf(layer, run(fault(layer)))).toBeGreaterThan(LIMIT)
    }
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
