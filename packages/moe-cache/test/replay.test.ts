import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { policyNames } from '../src/index.js'
import { belady, RoutingTrace, replay } from '../src/traces.js'

const percent = (rate: number): number => Math.round(rate * 1000) / 10

const shared = RoutingTrace.fromPairs(
  readFileSync(new URL('../../../fixtures/traces/expert_trace.bin', import.meta.url)),
  16
).lastSweepInDecodeOrder()
const demo = RoutingTrace.fromJsonLines(
  readFileSync(new URL('../../demo-model/expert_trace.jsonl', import.meta.url), 'utf8')
)

const keysOf = (trace: RoutingTrace): string[] =>
  Array.from({ length: trace.length }, (_, i) =>
    Array.from(trace.expertsAt(i), (id) => `${trace.layerAt(i)}:${id}`)
  ).flat()

/** Plain LRU, one request after the other and without pins, as the shared table was made. */
const sequentialLru = (trace: RoutingTrace, slots: number): number => {
  const resident = new Map<string, true>()
  const keys = keysOf(trace)
  let hits = 0
  for (const key of keys) {
    if (resident.delete(key)) hits++
    else if (resident.size === slots) resident.delete(resident.keys().next().value!)
    resident.set(key, true)
  }
  return hits / keys.length
}

/** The most hits any eviction choices give, by trying them all. */
const bestHits = (keys: readonly string[], slots: number, resident: readonly string[] = []): number => {
  const [key, ...later] = keys
  if (key === undefined) return 0
  if (resident.includes(key)) return 1 + bestHits(later, slots, resident)
  if (resident.length < slots) return bestHits(later, slots, [...resident, key])
  return Math.max(
    ...resident.map((out) => bestHits(later, slots, [...resident.filter((each) => each !== out), key]))
  )
}

describe('belady', () => {
  test.each([
    [512, 27.3],
    [1024, 37.1],
    [1472, 40.4],
    [2048, 43.3],
    [4096, 43.3]
  ])('equals the published rate of the shared trace with %i slots', (slots, rate) => {
    expect(percent(belady(shared, slots).hitRate)).toBe(rate)
  })

  test('equals an exhaustive search on small traces', () => {
    const keys = fc.array(fc.nat(4), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(keys, fc.integer({ min: 1, max: 3 }), (experts, slots) => {
        const trace = new RoutingTrace(1)
        for (const expert of experts) trace.record(0, [expert])
        expect(belady(trace, slots).hitRate).toBeCloseTo(bestHits(keysOf(trace), slots) / experts.length, 12)
      }),
      { seed: 20 }
    )
  })

  test('is at or above every policy on random traces', () => {
    const ids = fc.uniqueArray(fc.nat(9), { minLength: 3, maxLength: 3 })
    const records = fc.array(fc.tuple(fc.nat(2), ids), { maxLength: 60 })
    fc.assert(
      fc.property(
        records,
        fc.integer({ min: 3, max: 20 }),
        fc.constantFrom(...policyNames),
        (steps, slots, policy) => {
          const trace = new RoutingTrace(3)
          for (const [layer, experts] of steps) trace.record(layer, experts)
          expect(replay(trace, { slots, policy }).hitRate).toBeLessThanOrEqual(belady(trace, slots).hitRate)
        }
      ),
      { seed: 20, numRuns: 300 }
    )
  })

  test('is 0 on an empty trace', () => {
    expect(belady(new RoutingTrace(2), 2).hitRate).toBe(0)
  })
})

describe('replay', () => {
  test.each([
    [512, 0],
    [1024, 0],
    [1472, 20.6],
    [2048, 31.5],
    [4096, 39.4]
  ])('starts from a trace whose sequential lru rate with %i slots is the published one', (slots, rate) => {
    expect(percent(sequentialLru(shared, slots))).toBe(rate)
  })

  test.each([
    [512, { lru: 0, lfu: 8.8, 'layer-lru': 6.5, 's3-fifo': 0, 'next-use': 15.1 }],
    [1024, { lru: 0, lfu: 15, 'layer-lru': 16.6, 's3-fifo': 12.7, 'next-use': 24.9 }],
    [1472, { lru: 31.5, lfu: 19.3, 'layer-lru': 31.5, 's3-fifo': 21.5, 'next-use': 30.5 }],
    [2048, { lru: 31.5, lfu: 27.8, 'layer-lru': 34.3, 's3-fifo': 24.2, 'next-use': 34.4 }],
    [4096, { lru: 39.5, lfu: 39.9, 'layer-lru': 40.1, 's3-fifo': 39.3, 'next-use': 39.8 }]
  ])('gives known rates for the shared trace with %i slots', (slots, rates) => {
    for (const policy of policyNames) {
      const { hitRate } = replay(shared, { slots, policy })
      expect([policy, percent(hitRate)]).toEqual([policy, rates[policy]])
      expect(hitRate).toBeLessThanOrEqual(belady(shared, slots).hitRate)
    }
  })

  test.each([
    [48, { lru: 31.2, lfu: 26.1, 'layer-lru': 31.2, 's3-fifo': 29.4, 'next-use': 33.6 }, 58.1],
    [96, { lru: 52.7, lfu: 52.2, 'layer-lru': 59.4, 's3-fifo': 54.5, 'next-use': 60.8 }, 81.5]
  ])('gives known rates for the demo trace with %i slots', (slots, rates, best) => {
    expect(percent(belady(demo, slots).hitRate)).toBe(best)
    for (const policy of policyNames) {
      const { hits, misses, hitRate, layers } = replay(demo, { slots, policy })
      expect(hits + misses).toBe(demo.length * demo.topK)
      expect(layers.length).toBe(12)
      expect([policy, percent(hitRate)]).toEqual([policy, rates[policy]])
    }
  })

  test('counts what comes after the first part apart', () => {
    const from = demo.length / 2
    const whole = replay(demo, { slots: 96, policy: 'lru', from })
    const first = new RoutingTrace(4)
    for (let i = 0; i < from; i++) first.record(demo.layerAt(i), demo.expertsAt(i))
    const earlier = replay(first, { slots: 96, policy: 'lru' })
    expect(earlier.laterHitRate).toBe(earlier.hitRate)
    expect(whole.laterHitRate).toBe((whole.hits - earlier.hits) / (4 * from))
    const best = belady(demo, 96, from)
    expect(best.laterHitRate).toBeGreaterThan(whole.laterHitRate)
    expect(best.layers.reduce((sum, { hits }) => sum + hits, 0)).toBe(best.hits)
    const nothing = [
      replay(demo, { slots: 96, policy: 'lru', from: demo.length }),
      belady(demo, 96, demo.length)
    ]
    expect(nothing.map(({ laterHitRate }) => laterHitRate)).toEqual([0, 0])
  })

  test('misses only first uses when every expert fits', () => {
    expect(replay(demo, { slots: 192, policy: 'lru' })).toMatchObject({
      misses: 192,
      evictions: 0,
      resident: 192
    })
  })
})
