import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gaussian, poisoned } from '../../native-kit/test-kit/arrays.js'
import { deviation } from '../../native-kit/test-kit/goldens.js'
import { createVectorOps, foldKeyWeight } from '../src/index.js'
import * as reference from '../src/reference.js'

const ops = createVectorOps()
const eps = 1e-5
const sizes = [1, 7, 63, 64, 65, 7168]
// the loosest tolerance of the manifest for the same operators: eight times the error of plain float32
const relativeL2 = 2e-6

const rows = (x: Float32Array, dim: number) =>
  Array.from({ length: x.length / dim }, (_, t) => [...x.subarray(t * dim, (t + 1) * dim)])

describe('vector ops agree with double precision', () => {
  it.each(sizes)('in rmsNorm of %i', (dim) => {
    const x = gaussian(3 * dim, dim, 1e-3)
    const weight = gaussian(dim, 7)
    const out = poisoned(3 * dim)
    ops.rmsNorm(x, weight, eps, out, 3)
    const want = rows(x, dim).flatMap((row) => reference.rmsNorm(row, [...weight], eps))
    expect(deviation(out, Float64Array.from(want)).relativeL2).toBeLessThan(relativeL2)
  })

  it.each(sizes)('in residualMix and mixWeights of %i', (dim) => {
    for (const count of [1, 2, 5, 9]) {
      const sources = Array.from({ length: count }, (_, s) => gaussian(3 * dim, dim + s, 1 + s))
      const key = gaussian(dim, 11, 2 * dim ** -0.5)
      const out = poisoned(3 * dim)
      const weights = poisoned(3 * count)
      ops.residualMix(sources, key, eps, out, 3)
      ops.mixWeights(sources, key, eps, weights, 3)
      const tokens = sources.map((source) => rows(source, dim))
      const ofToken = (t: number) => tokens.map((source) => source[t]!)
      const mixed = [0, 1, 2].flatMap((t) => reference.residualMix(ofToken(t), [...key], eps))
      const shares = [0, 1, 2].flatMap((t) => reference.mixWeights(ofToken(t), [...key], eps))
      expect(deviation(out, Float64Array.from(mixed)).relativeL2).toBeLessThan(relativeL2)
      expect(deviation(weights, Float64Array.from(shares)).relativeL2).toBeLessThan(relativeL2)
    }
  })

  it.each([1, 7, 63, 64, 65, 6144])('in situGlu of %i', (length) => {
    const gate = gaussian(length, 1, 8)
    const up = gaussian(length, 2, 40)
    for (const [beta, linearBeta] of [
      [4, 25],
      [7, 3.3]
    ] as const) {
      const out = poisoned(length)
      ops.situGlu(gate, up, { beta, linearBeta }, out, length)
      const want = Float64Array.from(gate, (g, i) => reference.situ(g, up[i]!, beta, linearBeta))
      expect(deviation(out, want).relativeL2).toBeLessThan(relativeL2)
    }
  })

  it('in the choice and the weights of a router', () => {
    // logits and biases on a coarse grid: keys tie exactly or differ by far more than their rounding
    const expert = fc.record({
      logit: fc.integer({ min: -4, max: 4 }),
      bias: fc.integer({ min: -3, max: 3 })
    })
    const spec = { renormalize: fc.boolean(), scalingFactor: fc.constantFrom(1, 2.5) }
    fc.assert(
      fc.property(
        fc.array(expert, { minLength: 1, maxLength: 90 }),
        fc.nat(),
        fc.record(spec),
        (experts, pick, bound) => {
          const k = 1 + (pick % experts.length)
          const bias = Float32Array.from(experts, (e) => e.bias / 4)
          const logits = Float32Array.from(experts, (e) => e.logit)
          const indices = new Int32Array(k).fill(-1)
          const weights = poisoned(k)
          ops.createRouter({ bias, k, ...bound }).route(logits, indices, weights, 1)
          const want = reference.route([...logits], [...bias], { k, ...bound })
          expect([...indices]).toEqual(want.indices)
          expect(deviation(weights, Float64Array.from(want.weights)).relativeL2).toBeLessThan(relativeL2)
        }
      )
    )
  })

  it('in the folded key weight, rounded once', () => {
    const gain = gaussian(70, 1)
    const projection = gaussian(70, 2)
    expect([...foldKeyWeight(gain, projection)]).toEqual(
      [...gain].map((g, i) => Math.fround(g * projection[i]!))
    )
  })
})

describe('vector ops at the edges', () => {
  it('accept zero tokens and zero elements', () => {
    const one = new Float32Array(1)
    const none = new Float32Array(0)
    ops.rmsNorm(none, one, eps, none, 0)
    ops.residualMix([none], one, eps, none, 0)
    ops.add(none, none, none, 0)
    ops
      .createRouter({ bias: one, k: 1, renormalize: true, scalingFactor: 1 })
      .route(none, new Int32Array(0), none, 0)
  })

  it('leave what lies behind the output alone', () => {
    const x = gaussian(40, 1)
    const out = new Float32Array(80).fill(-7)
    ops.rmsNorm(x, gaussian(13, 2), eps, out, 3)
    expect(out.subarray(39).every((v) => v === -7)).toBe(true)
    ops.tanh(x, out, 19)
    expect(out.subarray(39).every((v) => v === -7)).toBe(true)
    expect(out[19]).not.toBe(-7)
  })

  it('give zeros for a row of zeros', () => {
    const out = poisoned(20)
    ops.rmsNorm(new Float32Array(20), gaussian(20, 1), eps, out, 1)
    expect([...out]).toEqual(new Array(20).fill(0).map((z, i) => z * gaussian(20, 1)[i]!))
  })

  it('hand NaN on instead of hiding it', () => {
    const x = gaussian(40, 1)
    x[33] = NaN
    const key = gaussian(40, 2)
    const out = new Float32Array(40)
    ops.rmsNorm(x, key, eps, out, 1)
    expect(out.every(Number.isNaN)).toBe(true)
    ops.residualMix([gaussian(40, 3), x, gaussian(40, 4)], key, eps, out, 1)
    expect(out.every(Number.isNaN)).toBe(true)
  })

  it('a router takes one source of ties in index order, also between 0 and -0', () => {
    const logits = new Float32Array(40).map((_, i) => (i % 2 ? -0 : 0))
    const indices = new Int32Array(20)
    const weights = poisoned(20)
    const spec = { k: 20, renormalize: true, scalingFactor: 1 }
    ops.createRouter({ bias: new Float32Array(40), ...spec }).route(logits, indices, weights, 1)
    expect([...indices]).toEqual(Array.from({ length: 20 }, (_, i) => i))
    expect(weights.every((w) => w === Math.fround(0.05))).toBe(true)
  })

  it('a router keeps weights finite when every selected score is zero', () => {
    const indices = new Int32Array(4)
    const weights = poisoned(4)
    const spec = { k: 4, renormalize: true, scalingFactor: 1 }
    const logits = new Float32Array(8).fill(-200)
    ops.createRouter({ bias: gaussian(8, 1), ...spec }).route(logits, indices, weights, 1)
    expect([...weights]).toEqual([0, 0, 0, 0])
  })

  it('a router keeps its bias when the caller changes the array', () => {
    const bias = Float32Array.of(0, 1, 0)
    const router = ops.createRouter({ bias, k: 1, renormalize: false, scalingFactor: 1 })
    bias.fill(NaN)
    const indices = new Int32Array(1)
    router.route(new Float32Array(3), indices, poisoned(1), 1)
    expect(indices[0]).toBe(1)
  })
})
