import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { samplerCases } from '../src/conformance.js'
import { logprobsOf } from '../src/logprobs.js'
import { Random } from '../src/random.js'
import { argmax, createGreedy, createSampler } from '../src/sampler.js'
import { chiSquareExcess, softmax, sortedPick } from './exact-sampling.js'

const plain = { temperature: 1, topP: 1, seed: 7n }

const code = (work: () => unknown) => {
  try {
    work()
  } catch (error) {
    return (error as { code?: string }).code
  }
  return 'nothing thrown'
}

const wrong = (settings: object) => code(() => createSampler(settings as never))

describe('the greedy sampler', () => {
  for (const { name, run } of samplerCases(createGreedy)) it(name, run)

  it('takes the lowest id on ties', () => {
    expect(createGreedy().pick(Float32Array.of(1, 3, 3, 2), null)).toBe(1)
  })

  it.each([0, 1, 2])('refuses a logit that is no number at %i', (at) => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const logits = Float32Array.of(1, 2, 3)
      logits[at] = bad
      expect(code(() => argmax(logits))).toBe('ERR_K3_LOGITS_NONFINITE')
      expect(code(() => createGreedy().pick(logits, null))).toBe('ERR_K3_LOGITS_NONFINITE')
      expect(code(() => createSampler(plain).pick(logits, null))).toBe('ERR_K3_LOGITS_NONFINITE')
    }
    const all = new Float32Array(3).fill(Number.NEGATIVE_INFINITY)
    expect(code(() => createSampler(plain).pick(all, null))).toBe('ERR_K3_LOGITS_NONFINITE')
  })
})

describe('createSampler', () => {
  const everything = {
    ...plain,
    temperature: 0.8,
    topP: 0.95,
    topK: 40,
    minP: 0.01,
    repetitionPenalty: 1.2,
    presencePenalty: 0.3,
    frequencyPenalty: -0.2,
    logitBias: { 3: 1.5 }
  }
  for (const { name, run } of samplerCases(() => createSampler(plain))) it(name, run)
  for (const { name, run } of samplerCases(() => createSampler(everything)))
    it(`${name}, all settings on`, run)

  it.each<[string, unknown[]]>([
    ['temperature', [-1, Number.NaN, Number.POSITIVE_INFINITY, '1', undefined]],
    ['topP', [0, -0.1, 1.01, Number.NaN, undefined]],
    ['topK', [-1, 1.5, Number.NaN, '40']],
    ['minP', [-0.1, 1.1, Number.NaN]],
    ['repetitionPenalty', [0, -1, 101, Number.NaN]],
    ['presencePenalty', [-2.1, 2.1, Number.NaN]],
    ['frequencyPenalty', [-2.1, 2.1, Number.NaN]],
    ['seed', [-1n, 1n << 64n, -1, 1.5, 2 ** 53, '7', undefined]],
    [
      'logitBias',
      [{ 1: 101 }, { 1: Number.NaN }, { 1: Number.POSITIVE_INFINITY }, { x: 1 }, { '-1': 1 }, [1], null]
    ],
    ['top_p', [0.9]]
  ])('refuses a wrong %s by name', (field, values) => {
    for (const value of values) {
      expect(() => createSampler({ ...plain, [field]: value } as never)).toThrow(
        expect.objectContaining({ code: 'ERR_K3_SAMPLER', field })
      )
    }
  })

  it('refuses what is no object', () => {
    for (const settings of [undefined, null, 7, 'greedy'])
      expect(wrong(settings as never)).toBe('ERR_K3_SAMPLER')
  })

  it('refuses a bias beyond the vocabulary and a mask that is too short', () => {
    const logits = new Float32Array(33)
    expect(code(() => createSampler({ ...plain, logitBias: { 33: 1 } }).pick(logits, null))).toBe(
      'ERR_K3_SAMPLER'
    )
    expect(code(() => createSampler(plain).pick(logits, new Uint32Array(1)))).toBe('ERR_K3_SAMPLER')
    expect(wrong({})).toBe('ERR_K3_SAMPLER')
  })

  it('refuses by name when nothing is left to pick', () => {
    const logits = new Float32Array(2)
    const banned = new Map([
      [0, Number.NEGATIVE_INFINITY],
      [1, Number.NEGATIVE_INFINITY]
    ])
    expect(code(() => createSampler({ ...plain, logitBias: banned }).pick(logits, null))).toBe(
      'ERR_K3_NO_TOKEN_ALLOWED'
    )
    expect(code(() => createGreedy().pick(logits, new Uint32Array(1)))).toBe('ERR_K3_NO_TOKEN_ALLOWED')
  })

  it.each([0, 5e-324, 1e-308, 1e-300, 1e-45])('takes the highest logit at temperature %d', (temperature) => {
    const sampler = createSampler({ ...plain, temperature })
    for (let i = 0; i < 20; i++) expect(sampler.pick(Float32Array.of(0.1, 0.3, 0.2, -80), null)).toBe(1)
  })

  it('is uniform at temperature 1e6 (chi-square)', () => {
    const logits = Float32Array.from({ length: 50 }, (_, i) => 20 * Math.sin(i))
    const sampler = createSampler({ ...plain, temperature: 1e6 })
    expect(chiSquareExcess(() => sampler.pick(logits, null), new Array(50).fill(1 / 50))).toBeLessThan(1)
  })

  it('takes the same token with topP tiny as with temperature 0, and counts topK beyond the vocabulary as all', () => {
    const logits = Float32Array.of(0.1, 0.3, 0.2)
    const tiny = createSampler({ ...plain, topP: Number.MIN_VALUE })
    for (let i = 0; i < 20; i++) expect(tiny.pick(logits, null)).toBe(1)
    const [all, off] = [createSampler({ ...plain, topK: 1e9 }), createSampler({ ...plain, topK: 0 })]
    for (let i = 0; i < 200; i++) expect(all.pick(logits, null)).toBe(off.pick(logits, null))
  })

  it('picks of what a mask allows as if there were nothing else, at every size of the vocabulary', () => {
    const random = new Random(5n)
    for (const size of [1, 31, 32, 33, 64, 100, 1000]) {
      const logits = Float32Array.from({ length: size }, () => 6 * random.next())
      for (let round = 0; round < 20; round++) {
        const ids = Array.from(logits.keys()).filter(() => random.next() < 0.4)
        if (ids.length === 0) ids.push(size - 1)
        // what stands beyond the vocabulary in the last word has no meaning
        const mask = new Uint32Array(Math.ceil(size / 32) + 1).fill(0xffffffff)
        for (const id of logits.keys()) if (!ids.includes(id)) mask[id >>> 5]! &= ~(1 << (id & 31))
        const only = Float32Array.from(ids, (id) => logits[id]!)
        for (const settings of [
          { ...plain, topP: 0.9 },
          { ...plain, temperature: 0 },
          { ...plain, topK: 3 }
        ]) {
          const picked = createSampler(settings).pick(logits, mask)
          expect(picked).toBe(ids[createSampler(settings).pick(only, null)])
        }
      }
    }
  })

  it('forgets the counts of the sequence before', () => {
    const sampler = createSampler({ ...plain, temperature: 0, presencePenalty: 2 })
    sampler.begin([7, 7, 1])
    sampler.begin([0])
    expect(sampler.pick(Float32Array.of(3, 2, 0), null)).toBe(1)
  })

  it('applies penalties to prompt and generated tokens, and bias to single ids, by the documented formulas', () => {
    const logits = Float32Array.of(2, -1, 0.5, 0, 0)
    const settings = {
      repetitionPenalty: 2,
      presencePenalty: 0.25,
      frequencyPenalty: 0.5,
      logitBias: { 4: -3 }
    }
    const sampler = createSampler({ ...plain, ...settings })
    sampler.begin([0, 1, 0])
    sampler.accept(2)
    const z = [2 / 2 - 0.25 - 2 * 0.5, -1 * 2 - 0.25 - 0.5, 0.5 / 2 - 0.25 - 0.5, 0, -3]
    expect(chiSquareExcess(() => sampler.pick(logits, null), softmax(z))).toBeLessThan(1)
    const greedy = createSampler({ ...plain, ...settings, temperature: 0 })
    greedy.begin([0, 1, 0])
    expect(greedy.pick(logits, null)).toBe(2)
  })

  it('picks what a full sort would, whatever the settings', () => {
    const number = (min: number, max: number) => fc.double({ min, max, noNaN: true })
    const settings = fc.record({
      temperature: number(0.01, 5),
      topP: fc.oneof(fc.constant(1), number(0.001, 1)),
      topK: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 300 })),
      minP: fc.oneof(fc.constant(0), number(1e-6, 1)),
      seed: fc.bigInt({ min: 0n, max: (1n << 64n) - 1n })
    })
    const shape = fc.record({
      size: fc.integer({ min: 1, max: 257 }),
      scale: number(0, 20),
      steps: fc.integer({ min: 1, max: 400 })
    })
    fc.assert(
      fc.property(settings, shape, (given, { size, scale, steps }) => {
        // rounded, so that ties occur
        const logits = Float32Array.from(
          { length: size },
          (_, i) => Math.round(scale * Math.sin(i * 7.13) * steps) / steps
        )
        const sampler = createSampler(given)
        const random = new Random(given.seed)
        for (let i = 0; i < 8; i++)
          expect(sampler.pick(logits, null)).toBe(sortedPick(logits, given, random.next()))
      }),
      { numRuns: 300, seed: 11 }
    )
  })
})

describe('logprobsOf', () => {
  it('gives the log-softmax of the raw logits, the best first, the lowest id on ties', () => {
    const logits = Float32Array.of(1, 3, 3, -2)
    const want = softmax([...logits]).map(Math.log)
    const { id, logprob, best } = logprobsOf(logits, 3, 3)
    expect([id, best.map((token) => token.id)]).toEqual([3, [1, 2, 0]])
    expect(logprob).toBeCloseTo(want[3]!, 12)
    best.forEach((token) => {
      expect(token.logprob).toBeCloseTo(want[token.id]!, 12)
    })
    expect(logprobsOf(logits, 0, 0).best).toEqual([])
    expect(logprobsOf(logits, 0, 9).best.length).toBe(4)
  })
})

describe('Random', () => {
  it('gives the documented sequence', () => {
    const random = new Random(1n)
    expect([random.next(), random.next(), random.next()].map((x) => x * 2 ** 32)).toMatchInlineSnapshot(`
      [
        1695105466,
        1423115009,
        634581793,
      ]
    `)
  })

  it('is in [0, 1) and differs by seed', () => {
    const [a, b] = [new Random(0n), new Random((1n << 64n) - 1n)]
    for (let i = 0; i < 1000; i++) {
      const x = a.next()
      expect(x >= 0 && x < 1).toBe(true)
      expect(x === b.next()).toBe(false)
    }
  })
})
