import { describe, expect, it } from 'vitest'
import { poisoned } from '../../native-kit/test-kit/arrays.js'
import { deviation, goldens } from '../../native-kit/test-kit/goldens.js'
import { createExpertMlp, type ExpertBatch, supportedIsas } from '../src/index.js'
import { expert } from '../src/reference.js'
import { firstDifference, pools, randomNumbers } from './arrays.js'
import { batchOf, betas, latents, packedExpert, randomExperts } from './experts.js'
import { fma } from './lane-order.js'

const parallel = pools()
const tensorNames = [
  'w1.weight_packed',
  'w1.weight_scale',
  'w2.weight_packed',
  'w2.weight_scale',
  'w3.weight_packed',
  'w3.weight_scale'
]
const pairCounts = (experts: number) =>
  Array.from({ length: experts }, (_, e) => [1, 2, 0, 3, 7, 1, 1, 4, 41][e % 9]!)

/** Every pair on its own, on the scalar path. */
const pairByPair = (
  made: ReturnType<typeof randomExperts>,
  z: Float32Array,
  batch: ExpertBatch
): Float32Array => {
  const { spec, region, bases } = made
  const mlp = createExpertMlp(spec, region, { isa: 'scalar' })
  const out = poisoned(batch.starts[batch.count]! * spec.latent)
  for (let e = 0; e < batch.count; e++)
    for (let p = batch.starts[e]!; p < batch.starts[e + 1]!; p++) {
      const one = {
        count: 1,
        bases: bases.subarray(e),
        starts: Int32Array.of(0, 1),
        tokens: Int32Array.of(0)
      }
      mlp.apply(z.subarray(batch.tokens[p]! * spec.latent), one, out.subarray(p * spec.latent))
    }
  return out
}

describe.each(supportedIsas())('an expert MLP on %s', (isa) => {
  it.each(goldens('expert').map((g) => [g.row.name, g] as const))('agrees with %s', (_, golden) => {
    const { latent, inter, batch } = golden.row.dims as { latent: number; inter: number; batch: number }
    const { region, layout } = packedExpert(tensorNames.map((name) => golden.tensor<Uint8Array>(name)))
    const mlp = createExpertMlp({ latent, inner: inter, topK: 1, ...betas, layout }, region, { isa })
    mlp.validate(0)
    const out = poisoned(batch * latent)
    const tokens = Int32Array.from({ length: batch }, (_, t) => t)
    mlp.apply(
      golden.tensor('z'),
      { count: 1, bases: new Float64Array(1), starts: Int32Array.of(0, batch), tokens },
      out
    )
    expect(golden.complaint('out.y', out)).toBeNull()
  })

  it('agrees with its double-precision twin as closely as with the golden', () => {
    const { rel_l2, max_ulp } = goldens('expert')[0]!.row.outputs['out.y']!
    const made = randomExperts(1, 64, 96, 31)
    const { spec, region } = made
    const matrix = (packed: number, scales: number, rows: number, cols: number) => ({
      packed: region.subarray(packed, packed + (rows * cols) / 2),
      scales: region.subarray(scales, scales + (rows * cols) / 32),
      rows,
      cols
    })
    const { w1Packed, w1Scale, w2Packed, w2Scale, w3Packed, w3Scale } = spec.layout
    const w1 = matrix(w1Packed, w1Scale, 96, 64)
    const w2 = matrix(w2Packed, w2Scale, 64, 96)
    const w3 = matrix(w3Packed, w3Scale, 96, 64)
    const z = latents(1, 64, 32)
    const out = poisoned(64)
    createExpertMlp(spec, region, { isa }).apply(z, batchOf(made.bases, [1], 1), out)
    const { relativeL2, maxUlp } = deviation(out, expert([w1, w2, w3], z, betas.beta, betas.linearBeta))
    expect(relativeL2).toBeLessThanOrEqual(rel_l2!)
    expect(maxUlp).toBeLessThanOrEqual(max_ulp!)
  })

  it.each([
    [1, 32, 32],
    [2, 64, 96],
    [3, 96, 160],
    [5, 160, 128],
    [9, 32, 224],
    [16, 128, 64],
    [17, 64, 32]
  ])('of %i experts, %i x %i, has the bits of each pair alone for any threads', (experts, latent, inner) => {
    const made = randomExperts(experts, latent, inner, experts)
    const z = latents(11, latent, 4)
    const batch = batchOf(made.bases, pairCounts(experts), 11)
    const want = pairByPair(made, z, batch)
    for (const { name, pool } of parallel) {
      const mlp = createExpertMlp(made.spec, made.region, { isa, ...(pool && { pool }) })
      const out = poisoned(want.length + 1)
      mlp.apply(z, batch, out)
      expect(firstDifference(out, want), name).toBe(-1)
      expect(out[want.length]).toBeNaN()
    }
  })

  it('computes a chunk in waves with the same bits and touches no other pair', () => {
    const made = randomExperts(5, 64, 96, 8)
    const z = latents(6, 64, 2)
    const whole = batchOf(made.bases, [2, 1, 5, 3, 1], 6)
    const mlp = createExpertMlp(made.spec, made.region, { isa })
    const want = poisoned(12 * 64)
    mlp.apply(z, whole, want)
    const out = poisoned(12 * 64)
    const wave = batchOf(made.bases.subarray(2), [5, 3, 1], 6, 3)
    mlp.apply(z, wave, out)
    expect(out.subarray(0, 3 * 64).every(Number.isNaN)).toBe(true)
    expect(firstDifference(out.subarray(3 * 64), want.subarray(3 * 64))).toBe(-1)
    mlp.apply(z, batchOf(made.bases, [2, 1], 6), out)
    expect(firstDifference(out, want)).toBe(-1)
  })

  it('keeps nothing between calls but memory', () => {
    const made = randomExperts(2, 32, 96, 5)
    const limits = { tokens: 4, pairs: 6 }
    const mlp = createExpertMlp(made.spec, made.region, { isa, limits })
    const [small, large] = [batchOf(made.bases, [1, 1], 1), batchOf(made.bases, [2, 4], 4)]
    const broken = new Float32Array(4 * 32).fill(NaN)
    const z = latents(4, 32, 9)
    const want = poisoned(2 * 32)
    createExpertMlp(made.spec, made.region, { isa }).apply(z, small, want)
    mlp.apply(broken, large, poisoned(6 * 32))
    const out = poisoned(2 * 32)
    mlp.apply(z, small, out)
    expect(firstDifference(out, want)).toBe(-1)
    expect(() => mlp.apply(latents(5, 32, 1), batchOf(made.bases, [2, 3], 5), poisoned(160))).toThrow(
      /limits/
    )
    expect(() => mlp.apply(z, batchOf(made.bases, [3, 4], 4), poisoned(224))).toThrow(/limits/)
  })

  it.each([
    [1, 1, 32],
    [3, 3, 96],
    [2, 16, 224],
    [5, 4, 3584]
  ])('combines %i tokens of %i experts in router order', (tokens, topK, latent) => {
    const { spec, region } = randomExperts(1, latent, 32, 1)
    const pairs = randomNumbers(tokens * topK * latent, 3)
    const weights = randomNumbers(tokens * topK, 4)
    const pairOf = Int32Array.from(weights, (_, i) => (i * 5 + 2) % (tokens * topK))
    const want = Float32Array.from({ length: tokens * latent }, (_, i) => {
      const [t, c] = [Math.floor(i / latent), i % latent]
      let sum = Math.fround(weights[t * topK]! * pairs[pairOf[t * topK]! * latent + c]!)
      for (let j = t * topK + 1; j < (t + 1) * topK; j++)
        sum = fma(weights[j]!, pairs[pairOf[j]! * latent + c]!, sum)
      return sum
    })
    for (const { name, pool } of parallel) {
      const mlp = createExpertMlp({ ...spec, topK }, region, { isa, ...(pool && { pool }) })
      const out = poisoned(tokens * latent)
      mlp.combine(pairs, pairOf, weights, out, tokens)
      expect(firstDifference(out, want), name).toBe(-1)
    }
  })
})

it('experts of the released size have the bits of the scalar path for several pairs and threads', () => {
  const made = randomExperts(1, 3584, 3072, 3)
  const z = latents(2, 3584, 1).map((value) => value / 16)
  const batch = batchOf(made.bases, [5], 2)
  const want = pairByPair(made, z, { ...batch, starts: Int32Array.of(0, 1) })
  expect(want.every(Number.isFinite)).toBe(true)
  for (const isa of supportedIsas().filter((name) => name !== 'scalar'))
    for (const { name, pool } of parallel) {
      const out = poisoned(5 * 3584)
      createExpertMlp(made.spec, made.region, { isa, ...(pool && { pool }) }).apply(z, batch, out)
      for (const pair of [0, 2, 4])
        expect(firstDifference(out.subarray(pair * 3584), want), `${isa}, ${name}, pair ${pair}`).toBe(-1)
    }
})

describe('validate', () => {
  it.each([
    ['w1', 'w1Scale', 96, 64],
    ['w2', 'w2Scale', 64, 96],
    ['w3', 'w3Scale', 96, 64]
  ] as const)('finds a NaN scale in %s', (tensor, field, rows, cols) => {
    const { spec, region, bases } = randomExperts(3, 64, 96, 2)
    const mlp = createExpertMlp(spec, region)
    for (const base of bases) mlp.validate(base)
    const groups = cols / 32
    region[bases[1]! + spec.layout[field] + (rows - 1) * groups + 1] = 255
    const at = { tensor, row: rows - 1, group: 1 }
    expect(() => mlp.validate(bases[1]!)).toThrow(
      expect.objectContaining({ code: 'ERR_MXFP4_SCALE_NAN', at })
    )
    mlp.validate(bases[2]!)
  })
})

describe('createExpertMlp', () => {
  const { spec, region, bases } = randomExperts(2, 64, 32, 2)
  const refused = (run: () => void, code: string) => expect(run).toThrow(expect.objectContaining({ code }))

  it('refuses widths, caps, layouts and regions that do not fit', () => {
    const create =
      (change: object, bytes = region) =>
      () =>
        createExpertMlp({ ...spec, ...change }, bytes)
    refused(create({ latent: 48 }), 'ERR_MXFP4_SHAPE')
    refused(create({ inner: 33 }), 'ERR_MXFP4_SHAPE')
    refused(create({ inner: 0 }), 'ERR_OUT_OF_RANGE')
    refused(create({ topK: 0 }), 'ERR_OUT_OF_RANGE')
    refused(create({ beta: 0 }), 'ERR_OUT_OF_RANGE')
    refused(create({ linearBeta: NaN }), 'ERR_OUT_OF_RANGE')
    refused(create({ layout: { ...spec.layout, w2Packed: -1 } }), 'ERR_OUT_OF_RANGE')
    refused(create({ layout: { ...spec.layout, w2Packed: spec.layout.w2Packed - 8 } }), 'ERR_OUT_OF_RANGE')
    refused(create({}, region.subarray(0, 1000)), 'ERR_OUT_OF_RANGE')
    refused(() => createExpertMlp(spec, { handle: {}, bytes: 1e6 }), 'ERR_INVALID_HANDLE')
    for (const pool of [{ handle: {} }, 5, null, {}, 'pool'])
      refused(() => createExpertMlp(spec, region, { pool: pool as never }), 'ERR_INVALID_HANDLE')
  })

  it('refuses limits that no memory can hold', () => {
    for (const pairs of [2 ** 40, 2 ** 52])
      refused(() => createExpertMlp(spec, region, { limits: { tokens: 1, pairs } }), 'ERR_MXFP4_MEMORY')
    refused(() => createExpertMlp(spec, region, { limits: { tokens: 0, pairs: 1 } }), 'ERR_OUT_OF_RANGE')
  })

  it('refuses batches that point outside', () => {
    const mlp = createExpertMlp(spec, region)
    const z = latents(3, 64, 1)
    const good = batchOf(bases, [2, 1], 3)
    const apply =
      (change: object, out = poisoned(3 * 64)) =>
      () =>
        mlp.apply(z, { ...good, ...change }, out)
    expect(apply({})).not.toThrow()
    refused(apply({ bases: Float64Array.of(0, region.length - 10) }), 'ERR_OUT_OF_RANGE')
    refused(apply({ bases: Float64Array.of(0, -1) }), 'ERR_OUT_OF_RANGE')
    refused(apply({ bases: Float64Array.of(0.5, 0) }), 'ERR_OUT_OF_RANGE')
    refused(apply({ bases: Float64Array.of(0) }), 'ERR_OUT_OF_RANGE')
    refused(apply({ bases: [0, 0] }), 'ERR_INVALID_ARG_TYPE')
    refused(apply({ starts: [0, 2, 3] }), 'ERR_INVALID_ARG_TYPE')
    refused(apply({ starts: Int32Array.of(0, 2, 1) }), 'ERR_OUT_OF_RANGE')
    refused(apply({ starts: Int32Array.of(-1, 2, 3) }), 'ERR_OUT_OF_RANGE')
    refused(apply({ starts: Int32Array.of(0, 2) }), 'ERR_OUT_OF_RANGE')
    refused(apply({ tokens: Int32Array.of(0, 1) }), 'ERR_OUT_OF_RANGE')
    refused(apply({ tokens: Int32Array.of(0, 1, 3) }), 'ERR_OUT_OF_RANGE')
    refused(apply({ tokens: Int32Array.of(0, 1, -3) }), 'ERR_OUT_OF_RANGE')
    refused(apply({ tokens: new Uint8Array(3) }), 'ERR_INVALID_ARG_TYPE')
    refused(apply({ count: -1 }), 'ERR_OUT_OF_RANGE')
    refused(apply({}, poisoned(3 * 64 - 1)), 'ERR_OUT_OF_RANGE')
    refused(() => mlp.validate(region.length), 'ERR_OUT_OF_RANGE')
  })

  it('refuses outputs over inputs, and a region that was transferred away', () => {
    const made = randomExperts(1, 64, 32, 2)
    const mlp = createExpertMlp(made.spec, made.region)
    const both = new Float32Array(4 * 64)
    const batch = batchOf(made.bases, [2], 2)
    refused(() => mlp.apply(both, batch, both.subarray(100)), 'ERR_OUT_OF_RANGE')
    mlp.apply(both, batch, both.subarray(128))
    refused(() => mlp.combine(both, Int32Array.of(1), poisoned(1), both.subarray(64), 1), 'ERR_OUT_OF_RANGE')
    structuredClone(made.region, { transfer: [made.region.buffer] })
    refused(() => mlp.apply(both, batch, poisoned(128)), 'ERR_OUT_OF_RANGE')
    refused(() => mlp.validate(0), 'ERR_OUT_OF_RANGE')
  })

  it('refuses to combine what is not there', () => {
    const mlp = createExpertMlp({ ...spec, topK: 2 }, region)
    const combine = (pairOf: Int32Array, weights: Float32Array, out: Float32Array) => () =>
      mlp.combine(poisoned(3 * 64), pairOf, weights, out, 1)
    expect(combine(Int32Array.of(2, 0), poisoned(2), poisoned(64))).not.toThrow()
    refused(combine(Int32Array.of(3, 0), poisoned(2), poisoned(64)), 'ERR_OUT_OF_RANGE')
    refused(combine(Int32Array.of(0), poisoned(2), poisoned(64)), 'ERR_OUT_OF_RANGE')
    refused(combine(Int32Array.of(0, 1), poisoned(1), poisoned(64)), 'ERR_OUT_OF_RANGE')
    refused(combine(Int32Array.of(0, 1), poisoned(2), poisoned(63)), 'ERR_OUT_OF_RANGE')
    refused(combine([0, 1] as never, poisoned(2), poisoned(64)), 'ERR_INVALID_ARG_TYPE')
  })

  it('does nothing for no experts and for experts without pairs', () => {
    const mlp = createExpertMlp(spec, region)
    const out = poisoned(64)
    mlp.apply(latents(1, 64, 1), batchOf(bases, [], 1), out)
    mlp.apply(latents(1, 64, 1), batchOf(bases, [0, 0], 1), out)
    expect(out.every(Number.isNaN)).toBe(true)
  })
})
