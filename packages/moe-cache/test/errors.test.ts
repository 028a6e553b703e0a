import { describe, expect, test } from 'vitest'
import { createExpertCache, type EvictionPolicy, ExpertCacheError } from '../src/index.js'
import { belady, RoutingTrace } from '../src/traces.js'
import { answer, range } from './support.js'

const caught = (action: () => unknown): unknown => {
  try {
    action()
  } catch (error) {
    return error
  }
  throw new Error('expected an error')
}

/** The coded error that the action throws. */
const refusal = (action: () => unknown): ExpertCacheError => {
  const error = caught(action)
  expect(error).toBeInstanceOf(ExpertCacheError)
  return error as ExpertCacheError
}

const misuse = (action: () => unknown): unknown => {
  const error = caught(action)
  expect(error).toBeInstanceOf(RangeError)
  return (error as { code?: unknown }).code
}

const cacheOf = (slots: number, topK: number) => createExpertCache({ slots, topK, policy: 'lru' })

describe('expert cache refuses', () => {
  test('fewer slots than the top-k, with both numbers', () => {
    const error = refusal(() => cacheOf(15, 16))
    expect(error).toMatchObject({ code: 'ERR_MOE_CACHE_TOO_FEW_SLOTS', fields: { slots: 15, topK: 16 } })
    expect(refusal(() => cacheOf(16, 16).resize(3)).code).toBe('ERR_MOE_CACHE_TOO_FEW_SLOTS')
    expect(refusal(() => belady(new RoutingTrace(4), 3)).code).toBe('ERR_MOE_CACHE_TOO_FEW_SLOTS')
  })

  test('a union larger than the slots, with both numbers', () => {
    const error = refusal(() => cacheOf(4, 2).plan(6, range(5)))
    expect(error).toMatchObject({
      code: 'ERR_MOE_CACHE_UNION_TOO_LARGE',
      fields: { layer: 6, requested: 5, slots: 4 }
    })
    expect(error.message).toContain('slices of at most 4')
  })

  test('a plan whose misses find every slot pinned or in flight', () => {
    const cache = cacheOf(4, 2)
    const filling = cache.plan(0, [1, 2])
    cache.plan(1, [1])
    const error = refusal(() => cache.plan(2, [1, 2]))
    expect(error).toMatchObject({
      code: 'ERR_MOE_CACHE_ALL_PINNED',
      fields: { layer: 2, misses: 2, claimable: 1, pinned: 3, slots: 4 }
    })
    cache.commit(filling)
    expect(cache.plan(2, [1, 2]).missCount).toBe(2)
  })

  test('a plan whose own hits leave too few slots to claim', () => {
    const cache = cacheOf(3, 2)
    cache.commit(cache.plan(0, [1, 2]))
    const held = cache.plan(1, [1])
    expect(refusal(() => cache.plan(0, [1, 2, 3])).code).toBe('ERR_MOE_CACHE_ALL_PINNED')
    cache.abort(held)
    expect(answer(cache.plan(0, [1, 2, 3]))).toEqual({ hits: [1, 2], joined: [], misses: [3] })
  })

  test('a resize below the pinned slots and a clear with an open plan', () => {
    const cache = cacheOf(8, 2)
    cache.plan(0, [1, 2, 3])
    expect(refusal(() => cache.resize(2))).toMatchObject({
      code: 'ERR_MOE_CACHE_IN_USE',
      fields: { slots: 2, pinned: 3 }
    })
    expect(refusal(() => cache.clear())).toMatchObject({ code: 'ERR_MOE_CACHE_IN_USE', fields: { plans: 1 } })
    expect(cache.slots).toBe(8)
  })

  test('a plan that was closed before, also when its arrays serve another plan', () => {
    const cache = cacheOf(4, 2)
    const plan = cache.plan(0, [1, 2])
    cache.commit(plan)
    const next = cache.plan(0, [3, 4])
    for (const close of [() => cache.commit(plan), () => cache.abort(plan)]) {
      expect(refusal(close).code).toBe('ERR_MOE_CACHE_PLAN_CLOSED')
    }
    expect(cache.has(0, 3)).toBe(false)
    cache.commit(next)
  })

  test('a plan of another cache', () => {
    expect(refusal(() => cacheOf(4, 2).commit(cacheOf(4, 2).plan(0, [1]))).code).toBe(
      'ERR_MOE_CACHE_PLAN_CLOSED'
    )
  })

  test('to commit a plan before the one that fills its joined slot', () => {
    const cache = cacheOf(4, 2)
    const ahead = cache.plan(2, [1])
    const now = cache.plan(2, [1])
    const error = refusal(() => cache.commit(now))
    expect(error).toMatchObject({
      code: 'ERR_MOE_CACHE_PLAN_EARLY',
      fields: { layer: 2, expert: 1, slot: 0 }
    })
    cache.commit(ahead)
    cache.commit(now)
  })

  test('to commit a plan whose joined slot was never filled', () => {
    const cache = cacheOf(4, 2)
    const ahead = cache.plan(2, [1])
    const now = cache.plan(2, [1])
    cache.abort(ahead)
    expect(cache.stats().pinned).toBe(1)
    expect(refusal(() => cache.commit(now)).code).toBe('ERR_MOE_CACHE_PLAN_LOST')
    const again = cache.plan(2, [1])
    expect(again.slots[0]).not.toBe(now.slots[0])
    cache.abort(now)
    cache.commit(again)
    expect(cache.stats()).toMatchObject({ resident: 1, pinned: 0 })
  })

  test.each([-1, 1, 7, 1.5, Number.NaN])('a victim it must not evict: %s', (slot) => {
    const rogue: EvictionPolicy = { touch: () => undefined, release: () => undefined, victim: () => slot }
    const cache = createExpertCache({ slots: 4, topK: 2, policy: rogue })
    cache.commit(cache.plan(0, [1, 2, 3, 4]))
    expect(refusal(() => cache.plan(0, [2, 5])).code).toBe('ERR_MOE_CACHE_POLICY')
    expect(cache.stats()).toMatchObject({ resident: 4, pinned: 0, evictions: 0 })
  })

  test('a victim named twice, and frees what the plan had claimed', () => {
    const rogue: EvictionPolicy = { touch: () => undefined, release: () => undefined, victim: () => 0 }
    const cache = createExpertCache({ slots: 3, topK: 2, policy: rogue })
    cache.commit(cache.plan(0, [1, 2, 3]))
    expect(refusal(() => cache.plan(0, [4, 5])).code).toBe('ERR_MOE_CACHE_POLICY')
    expect(cache.stats()).toMatchObject({ resident: 2, pinned: 0, evictions: 1 })
    expect(cache.has(0, 4)).toBe(false)
    cache.commit(cache.plan(0, [4]))
    expect(cache.has(0, 4)).toBe(true)
  })

  test('arguments that are no counts or ids', () => {
    const cache = cacheOf(4, 2)
    const wrong: (() => unknown)[] = [
      () => cacheOf(1.5, 1),
      () => cacheOf(4, 0),
      () => cacheOf(Number.NaN, 1),
      () => cacheOf(2 ** 25, 1),
      () => createExpertCache({ slots: 4, topK: 2, policy: 'fifo' as 'lru' }),
      () => cache.resize(0),
      () => cache.plan(-1, [1]),
      () => cache.plan(8192, [1]),
      () => cache.plan(0, []),
      () => cache.plan(0, [1, 1]),
      () => cache.plan(0, [-1]),
      () => cache.plan(0, [65536]),
      () => cache.plan(0, [0.5]),
      () => cache.plan(0, [1], 'scan' as 'token'),
      () => new RoutingTrace(0),
      () => new RoutingTrace(2).expertsAt(0),
      () => belady(new RoutingTrace(2), 0)
    ]
    for (const action of wrong) expect(misuse(action)).toBe('ERR_MOE_CACHE_ARGUMENT')
    expect(cache.stats()).toMatchObject({ pinned: 0, misses: 0 })
  })
})
