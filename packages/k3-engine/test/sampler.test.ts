import { describe, expect, it } from 'vitest'
import { samplerCases } from '../src/conformance.js'
import { Random } from '../src/random.js'
import { argmax, createSampler, greedy } from '../src/sampler.js'

const code = (work: () => unknown) => {
  try {
    work()
  } catch (error) {
    return (error as { code?: string }).code
  }
  return 'nothing thrown'
}

describe('greedy', () => {
  for (const { name, run } of samplerCases(() => greedy)) it(name, run)

  it('takes the lowest id on ties', () => {
    expect(greedy.pick(Float32Array.of(1, 3, 3, 2))).toBe(1)
  })

  it.each([0, 1, 2])('refuses a logit that is no number at %i', (at) => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const logits = Float32Array.of(1, 2, 3)
      logits[at] = bad
      expect(code(() => argmax(logits))).toBe('ERR_K3_LOGITS_NONFINITE')
    }
  })
})

describe('createSampler', () => {
  const settings = { temperature: 0.8, topP: 0.95, seed: 7n }
  for (const { name, run } of samplerCases(() => createSampler(settings))) it(name, run)

  it.each([
    { temperature: -1 },
    { temperature: Number.NaN },
    { temperature: Number.POSITIVE_INFINITY },
    { topP: 0 },
    { topP: 1.01 },
    { topP: Number.NaN },
    { seed: -1n },
    { seed: 1n << 64n },
    { seed: 7 }
  ])('refuses %o', (wrong) => {
    expect(code(() => createSampler({ ...settings, ...wrong } as never))).toBe('ERR_K3_SAMPLER')
  })

  it('is greedy at temperature 0 and at the smallest temperature', () => {
    const logits = Float32Array.of(0.1, 0.3, 0.2)
    expect(createSampler({ ...settings, temperature: 0 }).pick(logits)).toBe(1)
    expect(createSampler({ ...settings, temperature: 5e-324 }).pick(logits)).toBe(1)
  })

  it('draws tokens as often as their probabilities say (chi-square, 4 degrees of freedom, p > 0.001)', () => {
    const logits = Float32Array.of(0, 1, 2, -1, 0.5)
    const sampler = createSampler({ temperature: 1, topP: 1, seed: 42n })
    const weights = Array.from(logits, Math.exp)
    const total = weights.reduce((sum, w) => sum + w, 0)
    const draws = 20_000
    const counts = new Array<number>(5).fill(0)
    for (let i = 0; i < draws; i++) counts[sampler.pick(logits)]!++
    const chi = counts.reduce((sum, n, i) => {
      const want = (draws * weights[i]!) / total
      return sum + (n - want) ** 2 / want
    }, 0)
    expect(chi).toBeLessThan(18.47)
  })

  it('never leaves the nucleus', () => {
    const logits = Float32Array.of(3, 2.9, -3, -4)
    const sampler = createSampler({ temperature: 1, topP: 0.9, seed: 1n })
    for (let i = 0; i < 500; i++) expect(sampler.pick(logits)).toBeLessThan(2)
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
