import { readFileSync } from 'node:fs'
import { modelDir } from '@k3/demo-model'
import { type EvictionPolicy, policyNames } from '@k3/moe-cache'
import { RoutingTrace, replay } from '@k3/moe-cache/traces'
import { describe, expect, it } from 'vitest'
import { openModel } from '../src/index.js'
import { expectedHitRate } from '../src/memory/hit-rate.js'

const released = { experts: 82_432, tokenExperts: 1472 }
const small = { experts: 192, tokenExperts: 48 }
const recorded = RoutingTrace.fromPairs(
  readFileSync(new URL('../../../fixtures/traces/expert_trace.bin', import.meta.url)),
  16
).lastSweepInDecodeOrder()
const demo = RoutingTrace.fromJsonLines(
  readFileSync(new URL('../../demo-model/expert_trace.jsonl', import.meta.url), 'utf8')
)

describe.each(policyNames)('expectedHitRate of %s', (policy) => {
  const inPoints = (slots: number, counts: typeof released) => 100 * expectedHitRate(policy, slots, counts)

  it.each([147, 442, 1030, 1457, 1472, 2061, 2944, 5888, 10_010])(
    'is what a replay of the recorded routing gives with %i slots',
    (slots) => {
      expect(
        Math.abs(inPoints(slots, released) - 100 * replay(recorded, { slots, policy }).hitRate)
      ).toBeLessThan(0.1)
    }
  )

  // 9, 18, 26, 36 and 52 GB, between the points that are written down
  it.each([512, 1025, 1481, 2051, 2962])('is close to it with %i slots', (slots) => {
    expect(
      Math.abs(inPoints(slots, released) - 100 * replay(recorded, { slots, policy }).hitRate)
    ).toBeLessThan(1)
  })

  it('promises the demo model, of which it knows nothing, little more than its trace gives', () => {
    for (const slots of [5, 12, 24, 48, 72, 96, 144, 168]) {
      const { hitRate } = replay(demo, { slots, policy })
      expect(inPoints(slots, small)).toBeLessThan(100 * hitRate + 5)
    }
  })

  it('grows with the slots, from nothing to everything', () => {
    for (const [experts, tokenExperts] of [
      [82_432, 1472],
      [192, 48],
      [96, 48],
      [48, 48]
    ] as const) {
      let last = 0
      for (let slots = tokenExperts / 4; slots <= experts; slots += Math.ceil(experts / 5000)) {
        const rate = expectedHitRate(policy, slots, { experts, tokenExperts })
        expect(rate).toBeGreaterThanOrEqual(last)
        expect(rate).toBeLessThanOrEqual(1)
        last = rate
      }
      expect(expectedHitRate(policy, experts, { experts, tokenExperts })).toBe(1)
    }
    expect(expectedHitRate(policy, 0, released)).toBe(0)
    expect(expectedHitRate(policy, 0, { experts: 0, tokenExperts: 0 })).toBe(1)
  })
})

describe('the hits a model expects', () => {
  const newestFirst = (released: number[] = []): EvictionPolicy => ({
    touch: (slot) => void (released.includes(slot) && released.splice(released.indexOf(slot), 1)),
    release: (slot, resident) => void (resident && released.push(slot)),
    victim: () => released.pop()!
  })

  it.each([
    ['next-use', undefined],
    ['lfu', 'lfu' as const],
    ['lru', newestFirst()]
  ])('are those of %s', async (name, policy) => {
    const parts = policy === undefined ? {} : { policy }
    await using model = await openModel(modelDir, { threads: 1, cacheSlots: 40, parts })
    const { forecast, cacheSlots } = model.memory
    const counts = { experts: 192, tokenExperts: 48 }
    expect(forecast).toMatchObject({
      policy: name,
      hitRate: expectedHitRate(forecast.policy, cacheSlots, counts)
    })
  })
})
