import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  belady,
  createExpertCache,
  type EvictionPolicy,
  type ExpertCacheOptions,
  RoutingTrace,
  replay
} from '../src/index.js'
import { IndexedHeap } from '../src/indexed-heap.js'
import { range } from './support.js'

type Use = readonly [layer: number, ...ids: number[]]

/** Runs the uses in order and returns the experts of `layer` that are left. */
const residentAfter = (
  policy: ExpertCacheOptions['policy'],
  slots: number,
  uses: Use[],
  layer = 0
): number[] => {
  const cache = createExpertCache({ slots, topK: 1, policy })
  for (const [at, ...ids] of uses) cache.commit(cache.plan(at, ids))
  return range(10).filter((expert) => cache.has(layer, expert))
}

const traceOf = (topK: number, uses: Use[]): RoutingTrace => {
  const trace = new RoutingTrace(topK)
  for (const [layer, ...ids] of uses) trace.record(layer, ids)
  return trace
}

/** Evicts what was used last: the best there is for a circular scan. */
const mru = (): EvictionPolicy => {
  const released: number[] = []
  return {
    touch(slot) {
      if (released.includes(slot)) released.splice(released.indexOf(slot), 1)
    },
    release(slot, resident) {
      if (resident) released.push(slot)
    },
    victim: () => released.pop()!
  }
}

describe('lru', () => {
  test('evicts the expert whose use ended longest ago', () => {
    const uses: Use[] = [
      [0, 1],
      [0, 2],
      [0, 3],
      [0, 1],
      [0, 4]
    ]
    expect(residentAfter('lru', 3, uses)).toEqual([1, 3, 4])
    expect(residentAfter('lru', 3, [...uses, [0, 5], [0, 6]])).toEqual([4, 5, 6])
  })

  test('counts the end of an open plan as a use', () => {
    const cache = createExpertCache({ slots: 3, topK: 1, policy: 'lru' })
    cache.commit(cache.plan(0, [1]))
    const long = cache.plan(0, [1])
    cache.commit(cache.plan(0, [2]))
    cache.commit(cache.plan(0, [3]))
    cache.commit(long)
    cache.commit(cache.plan(0, [4]))
    expect([1, 2].map((expert) => cache.has(0, expert))).toEqual([true, false])
  })

  test('hits nothing on a circle one longer than the cache', () => {
    const circle: Use[] = Array.from({ length: 40 }, (_, i) => [0, i % 5])
    expect(replay(traceOf(1, circle), { slots: 4, policy: 'lru' }).hits).toBe(0)
  })
})

describe('lfu', () => {
  test('evicts the expert used least often, the longest unused on a tie', () => {
    const uses: Use[] = [
      [0, 1],
      [0, 1],
      [0, 2],
      [0, 3],
      [0, 4]
    ]
    expect(residentAfter('lfu', 3, uses)).toEqual([1, 3, 4])
    expect(residentAfter('lfu', 3, [...uses, [0, 3], [0, 5]])).toEqual([1, 3, 5])
  })

  test('remembers uses across an eviction', () => {
    const uses: Use[] = [
      [0, 1],
      [0, 2],
      [0, 3],
      [0, 1],
      [0, 4]
    ]
    expect(residentAfter('lfu', 2, uses)).toEqual([1, 4])
  })
})

describe('layer-lru', () => {
  test('evicts from the layer that holds most', () => {
    const uses: Use[] = [
      [0, 1],
      [0, 2],
      [0, 3],
      [1, 1],
      [2, 1]
    ]
    expect(residentAfter('layer-lru', 4, uses, 0)).toEqual([2, 3])
    expect(residentAfter('layer-lru', 4, uses, 1)).toEqual([1])
  })

  test('evicts from the asking layer on a tie', () => {
    const uses: Use[] = [
      [0, 1],
      [0, 2],
      [1, 1],
      [1, 2],
      [1, 3]
    ]
    expect(residentAfter('layer-lru', 4, uses, 0)).toEqual([1, 2])
    expect(residentAfter('layer-lru', 4, uses, 1)).toEqual([2, 3])
  })

  test('keeps its share of each layer where plain lru hits nothing', () => {
    const circle: Use[] = Array.from({ length: 60 }, (_, i) => [i % 6, 0, 1 + (Math.floor(i / 6) % 3)])
    const hits = (policy: 'lru' | 'layer-lru') => replay(traceOf(2, circle), { slots: 9, policy }).hits
    expect(hits('lru')).toBe(0)
    expect(hits('layer-lru')).toBe(18)
  })
})

describe('an own policy', () => {
  test('is followed: most recently used first equals Belady on a circle', () => {
    const circle = traceOf(
      1,
      Array.from({ length: 200 }, (_, i): Use => [i % 20, 0])
    )
    const { hitRate } = replay(circle, { slots: 12, policy: mru() })
    expect(hitRate).toBe(belady(circle, 12))
    expect(hitRate).toBeGreaterThan(0.5)
  })
})

describe('indexed heap', () => {
  test('gives the same order as a sort after any sets and removes', () => {
    const priority = fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 5 }), fc.nat(3))
    fc.assert(
      fc.property(fc.array(priority, { maxLength: 80 }), (changes) => {
        const heap = new IndexedHeap()
        const model = new Map<number, number>()
        for (const [id, primary, act] of changes) {
          if (act === 0) {
            heap.remove(id)
            model.delete(id)
          } else {
            heap.set(id, primary, id)
            model.set(id, primary)
          }
        }
        const sorted = [...model].sort(([a, x], [b, y]) => x - y || a - b).map(([id]) => id)
        const drained: number[] = []
        for (let id = heap.first(); id !== -1; id = heap.first()) {
          drained.push(id)
          heap.remove(id)
        }
        expect(drained).toEqual(sorted)
      }),
      { seed: 20 }
    )
  })
})
