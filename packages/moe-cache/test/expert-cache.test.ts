import { describe, expect, test } from 'vitest'
import { createExpertCache, type EvictionPolicy, policyNames } from '../src/index.js'
import { answer, range, slotsOf } from './support.js'

describe.each(policyNames)('expert cache (%s)', (policy) => {
  test('keeps the hits of a plan when all else is replaced, with exactly topK slots', () => {
    const cache = createExpertCache({ slots: 16, topK: 16, policy })
    cache.commit(cache.plan(0, range(16)))
    const plan = cache.plan(0, [99, 98, 97, 0, 1, 2, 96, 95, 94, 93, 92, 91, 90, 89, 88, 87])
    expect(answer(plan).hits).toEqual([0, 1, 2])
    expect(new Set(slotsOf(plan)).size).toBe(16)
    cache.commit(plan)
    expect(range(3).every((expert) => cache.has(0, expert))).toBe(true)
    expect(cache.stats()).toMatchObject({ hits: 3, misses: 29, evictions: 13, resident: 16, pinned: 0 })
  })

  test('serves 16 new experts of 16 again and again without sharing a slot', () => {
    const cache = createExpertCache({ slots: 16, topK: 16, policy })
    for (let round = 0; round < 50; round++) {
      const plan = cache.plan(round % 3, range(16, round * 16))
      expect(plan.missCount).toBe(16)
      expect(slotsOf(plan).sort((a, b) => a - b)).toEqual(range(16))
      cache.commit(plan)
    }
  })

  test('works with one slot and a top-1 router', () => {
    const cache = createExpertCache({ slots: 1, topK: 1, policy })
    for (const [expert, misses] of [
      [5, 1],
      [5, 0],
      [6, 1],
      [5, 1]
    ] as const) {
      const plan = cache.plan(0, [expert])
      expect([plan.missCount, plan.slots[0]]).toEqual([misses, 0])
      cache.commit(plan)
    }
    expect(cache.has(0, 6)).toBe(false)
  })

  test('reads a union larger than the slots in waves, resident experts first', () => {
    const cache = createExpertCache({ slots: 8, topK: 4, policy })
    cache.commit(cache.plan(1, [10, 11, 12, 13]))
    const union = range(20)
    const order = [...union.filter((id) => cache.has(1, id)), ...union.filter((id) => !cache.has(1, id))]
    const read: number[] = []
    for (let at = 0; at < order.length; at += cache.slots) {
      const plan = cache.plan(1, order.slice(at, at + cache.slots))
      read.push(...answer(plan).misses)
      cache.commit(plan)
    }
    expect(read.sort((a, b) => a - b)).toEqual(union.filter((id) => id < 10 || id > 13))
  })

  test('forgets all on clear and starts counting anew', () => {
    const cache = createExpertCache({ slots: 6, topK: 4, policy })
    cache.commit(cache.plan(0, [1, 2, 3, 4]))
    cache.commit(cache.plan(1, [1, 2, 3]))
    cache.clear()
    expect(cache.stats()).toEqual({
      slots: 6,
      resident: 0,
      pinned: 0,
      hits: 0,
      joined: 0,
      misses: 0,
      evictions: 0,
      hitRate: 0,
      layers: []
    })
    expect(cache.plan(0, [1, 2, 3, 4, 5, 6]).missCount).toBe(6)
  })

  test('evicts by policy on shrink, never a pinned expert, and moves none', () => {
    const cache = createExpertCache({ slots: 8, topK: 2, policy })
    cache.commit(cache.plan(0, range(8)))
    const pinned = cache.plan(0, [0, 1])
    const slots = slotsOf(pinned)
    const retired = cache.resize(3)
    expect(retired.length).toBe(5)
    expect(slots.some((slot) => retired.includes(slot))).toBe(false)
    expect(cache.stats()).toMatchObject({ slots: 3, resident: 3, pinned: 2, evictions: 5 })
    expect([cache.has(0, 0), cache.has(0, 1)]).toEqual([true, true])
    cache.commit(pinned)
    expect(Array.from(cache.resize(9))).toEqual([...retired, 8])
    expect(cache.plan(1, range(6)).missCount).toBe(6)
    expect(cache.stats().evictions).toBe(5)
  })
})

describe('expert cache with several plans open', () => {
  test('claims for a lookahead although every slot is taken', () => {
    const cache = createExpertCache({ slots: 8, topK: 4, policy: 'lru' })
    cache.commit(cache.plan(0, range(4)))
    cache.commit(cache.plan(1, range(4)))
    const now = cache.plan(0, range(4))
    const ahead = cache.plan(2, [7, 8])
    expect(answer(ahead).misses).toEqual([7, 8])
    expect(slotsOf(ahead).some((slot) => slotsOf(now).includes(slot))).toBe(false)
  })

  test('joins an expert that another plan is filling instead of claiming a second slot', () => {
    const cache = createExpertCache({ slots: 8, topK: 2, policy: 'lru' })
    const ahead = cache.plan(3, [5, 6])
    const now = cache.plan(3, [6, 7])
    expect(answer(now)).toEqual({ hits: [], joined: [6], misses: [7] })
    expect(now.slots[0]).toBe(ahead.slots[1])
    expect(cache.has(3, 6)).toBe(false)
    cache.commit(ahead)
    expect(cache.has(3, 6)).toBe(true)
    cache.commit(now)
    expect(cache.stats()).toMatchObject({ hits: 1, joined: 1, misses: 3, hitRate: 0.25, pinned: 0 })
  })

  test('keeps a slot pinned until the last plan that uses it is closed', () => {
    const cache = createExpertCache({ slots: 4, topK: 2, policy: 'lru' })
    cache.commit(cache.plan(0, [1, 2]))
    const first = cache.plan(0, [1, 2])
    const second = cache.plan(0, [1, 2])
    cache.commit(first)
    expect(cache.stats().pinned).toBe(2)
    cache.commit(cache.plan(0, [3, 4]))
    cache.commit(cache.plan(0, [5, 6]))
    expect([cache.has(0, 1), cache.has(0, 2)]).toEqual([true, true])
    cache.abort(second)
    expect(cache.stats().pinned).toBe(0)
  })

  test('frees the claimed slots on abort, keeps the hits and loses what was evicted', () => {
    const cache = createExpertCache({ slots: 4, topK: 4, policy: 'lru' })
    cache.commit(cache.plan(0, [1, 2, 3, 4]))
    const plan = cache.plan(0, [3, 4, 5, 6])
    cache.abort(plan)
    expect([1, 2, 3, 4, 5, 6].map((expert) => cache.has(0, expert))).toEqual([
      false,
      false,
      true,
      true,
      false,
      false
    ])
    expect(cache.stats()).toMatchObject({ resident: 2, pinned: 0, evictions: 2 })
    expect(answer(cache.plan(0, [3, 5, 6, 7]))).toEqual({ hits: [3], joined: [], misses: [5, 6, 7] })
  })

  test('leaves the cache as it was when a plan is refused', () => {
    const cache = createExpertCache({ slots: 4, topK: 2, policy: 'lru' })
    cache.commit(cache.plan(0, [1, 2]))
    const open = cache.plan(0, [3, 4])
    const before = cache.stats()
    expect(() => cache.plan(0, [1, 5, 6])).toThrow()
    expect(cache.stats()).toEqual(before)
    cache.commit(open)
    expect(answer(cache.plan(0, [1, 2, 3, 4])).hits).toEqual([1, 2, 3, 4])
  })

  test('hands the same arrays to later plans of the same size', () => {
    const cache = createExpertCache({ slots: 4, topK: 2, policy: 'lru' })
    const first = cache.plan(0, [1, 2])
    const { slots } = first
    cache.commit(first)
    expect([first.count, first.missCount, first.slots.length]).toEqual([0, 0, 0])
    expect(cache.plan(0, [1, 2]).slots).toBe(slots)
  })
})

describe('expert cache statistics', () => {
  test('count per layer', () => {
    const cache = createExpertCache({ slots: 8, topK: 2, policy: 'lru' })
    for (const layer of [1, 7, 1]) cache.commit(cache.plan(layer, [0, 1]))
    expect(cache.stats().layers).toEqual([
      { layer: 1, hits: 2, misses: 2, hitRate: 0.5 },
      { layer: 7, hits: 0, misses: 2, hitRate: 0 }
    ])
  })

  test('are snapshots that later plans leave alone', () => {
    const cache = createExpertCache({ slots: 8, topK: 2, policy: 'lru' })
    const before = cache.stats()
    cache.plan(0, [0, 1])
    expect(before.misses).toBe(0)
  })
})

describe('expert cache with an own policy', () => {
  test('tells it slot, layer, expert, rank and residency in order', () => {
    const calls: unknown[] = []
    const spy: EvictionPolicy = {
      touch: (...args) => calls.push(['touch', ...args]),
      release: (...args) => calls.push(['release', ...args]),
      victim(layer) {
        calls.push(['victim', layer])
        return 0
      }
    }
    const cache = createExpertCache({ slots: 2, topK: 2, policy: spy })
    cache.commit(cache.plan(4, [9, 8]))
    cache.abort(cache.plan(4, [7, 8]))
    expect(calls).toEqual([
      ['touch', 0, 4, 9, 0],
      ['touch', 1, 4, 8, 1],
      ['release', 0, true],
      ['release', 1, true],
      ['touch', 1, 4, 8, 1],
      ['victim', 4],
      ['touch', 0, 4, 7, 0],
      ['release', 1, true],
      ['release', 0, false]
    ])
  })
})
