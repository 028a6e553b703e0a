import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import {
  createExpertCache,
  type EvictionPolicy,
  type ExpertCacheOptions,
  type PolicyName,
  policyNames
} from '../src/index.js'
import { IndexedHeap } from '../src/indexed-heap.js'
import { SlotQueues } from '../src/slot-queues.js'
import { belady, RoutingTrace, replay } from '../src/traces.js'
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

describe('s3-fifo', () => {
  test('lets a scan pass and keeps what is used again', () => {
    const scan = (first: number): Use[] => range(30, first).map((expert): Use => [1, 100 + expert])
    const again = range(3).flatMap((): Use[] => [
      [0, 1],
      [0, 2]
    ])
    expect(residentAfter('s3-fifo', 10, [...again, ...scan(0), ...scan(30)])).toEqual([1, 2])
    expect(residentAfter('lru', 10, [...again, ...scan(0), ...scan(30)])).toEqual([])
  })

  test('lets what comes back soon into the main queue', () => {
    const scan = range(9).map((expert): Use => [1, 100 + expert])
    const back: Use[] = [[0, 1], ...scan, [1, 200], [0, 1]]
    expect(residentAfter('s3-fifo', 10, [...back, ...range(20, 300).map((id): Use => [1, id])])).toEqual([1])
  })
})

describe('next-use', () => {
  /** One token after the other through `layers` layers: expert 0 of each is chosen always, the others in turn. */
  const circle = (layers: number, tokens: number): Use[] =>
    Array.from({ length: layers * tokens }, (_, i) => [i % layers, 0, 1 + (Math.floor(i / layers) % 50)])

  test('keeps the likely expert of each layer where lru keeps none', () => {
    const trace = traceOf(2, circle(20, 30))
    const hits = (policy: PolicyName) => replay(trace, { slots: 24, policy }).hits
    expect(hits('lru')).toBe(0)
    expect(hits('next-use')).toBeGreaterThan(0.98 * 20 * 29)
  })

  test('gives up the low ranks of the layer that was just left', () => {
    const cache = createExpertCache({ slots: 12, topK: 4, policy: 'next-use' })
    const chosen = (token: number) => [1, 2, 3 + 2 * token, 4 + 2 * token]
    for (let token = 0; token < 20; token++) {
      for (const layer of [0, 1, 2]) cache.commit(cache.plan(layer, chosen(token)))
    }
    cache.commit(cache.plan(0, chosen(20)))
    cache.commit(cache.plan(1, [50, 51, 52, 53]))
    expect([1, 2].map((expert) => cache.has(2, expert))).toEqual([true, true])
    expect([43, 44].map((expert) => cache.has(0, expert))).toEqual([false, false])
  })

  test('takes a lookahead for no use: what it brings is not thought likely', () => {
    const run = (use: 'token' | 'ahead'): boolean => {
      const cache = createExpertCache({ slots: 6, topK: 1, policy: 'next-use' })
      for (let token = 0; token < 8; token++) {
        for (const layer of [0, 1, 2]) cache.commit(cache.plan(layer, [1]))
        cache.commit(cache.plan(2, [9], use))
      }
      for (const layer of [0, 1, 2]) cache.commit(cache.plan(layer, [20]))
      cache.commit(cache.plan(0, [30]))
      return cache.has(2, 9)
    }
    expect([run('token'), run('ahead')]).toEqual([true, false])
  })

  test('is lru with a single layer', () => {
    const uses = range(6).map((expert): Use => [0, expert])
    expect(residentAfter('next-use', 3, [...uses.slice(0, 4), [0, 2], ...uses.slice(4)])).toEqual([2, 4, 5])
  })
})

describe('a prompt', () => {
  test.each(policyNames)('leaves the working set of %s alone but for its share', (policy) => {
    const cache = createExpertCache({ slots: 32, topK: 4, policy })
    for (let token = 0; token < 6; token++) {
      for (let layer = 0; layer < 8; layer++) cache.commit(cache.plan(layer, range(4)))
    }
    const held = (): number => {
      let count = 0
      for (let layer = 0; layer < 8; layer++) count += range(4).filter((id) => cache.has(layer, id)).length
      return count
    }
    expect([held(), cache.scanSlots]).toEqual([32, 4])
    for (let layer = 0; layer < 8; layer++) {
      for (let at = 0; at < 40; at += 4) cache.commit(cache.plan(layer, range(4, 100 + at), 'prompt'))
    }
    expect(held()).toBe(28)
    expect(cache.stats().resident).toBe(32)
    expect(cache.scanSlots).toBe(4)
  })

  test('fills what is free, and keeps the part of a circle that fits', () => {
    const cache = createExpertCache({ slots: 16, topK: 2, policy: 'lru' })
    const scan = (): void => {
      for (let layer = 0; layer < 20; layer++) cache.commit(cache.plan(layer, [0], 'prompt'))
    }
    expect(cache.scanSlots).toBe(16)
    scan()
    scan()
    expect(cache.stats()).toMatchObject({ hits: 16, misses: 24 })
  })

  test('hands what a token uses to the policy', () => {
    const cache = createExpertCache({ slots: 4, topK: 1, policy: 'lru' })
    cache.commit(cache.plan(0, range(4), 'prompt'))
    cache.commit(cache.plan(0, [3]))
    for (const id of [10, 11, 12, 13, 14]) cache.commit(cache.plan(0, [id], 'prompt'))
    expect([0, 1, 3].map((id) => cache.has(0, id))).toEqual([true, true, true])
    for (const id of [20, 21, 22]) cache.commit(cache.plan(0, [id]))
    expect([0, 1, 3, 20, 21, 22].map((id) => cache.has(0, id))).toEqual([
      false,
      false,
      true,
      true,
      true,
      true
    ])
  })
})

describe('work of a policy', () => {
  /** Heap and queue operations of a plan, at most, once the cache is full. Each is O(1) or O(log queues). */
  const mostOperations = (policy: PolicyName, slots: number): number => {
    let operations = 0
    const spies = [
      ...(['set', 'remove'] as const).map((name) => vi.spyOn(IndexedHeap.prototype, name)),
      ...(['append', 'remove', 'move'] as const).map((name) => vi.spyOn(SlotQueues.prototype, name))
    ]
    const cache = createExpertCache({ slots, topK: 4, policy })
    for (let i = 0; i < 2 * slots; i++) cache.commit(cache.plan(i % 16, range(4, (7 * i) % slots)))
    for (let i = 0; i < 500; i++) {
      for (const spy of spies) spy.mockClear()
      cache.commit(cache.plan(i % 16, range(4, (11 * i) % slots)))
      operations = Math.max(
        operations,
        spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0)
      )
    }
    for (const spy of spies) spy.mockRestore()
    return operations
  }

  test.each(policyNames.filter((policy) => policy !== 's3-fifo'))(
    'of %s does not grow with the slots',
    (policy) => {
      expect(mostOperations(policy, 2048)).toBeLessThanOrEqual(mostOperations(policy, 64) + 40)
    }
  )

  test('of s3-fifo does not grow with the slots on average', () => {
    const perPlan = (slots: number): number => {
      const append = vi.spyOn(SlotQueues.prototype, 'append')
      const cache = createExpertCache({ slots, topK: 4, policy: 's3-fifo' })
      const plans = 4 * slots
      for (let i = 0; i < plans; i++) cache.commit(cache.plan(i % 16, range(4, (7 * i) % slots)))
      const calls = append.mock.calls.length
      append.mockRestore()
      return calls / plans
    }
    expect(perPlan(2048)).toBeLessThanOrEqual(perPlan(64) + 8)
  })
})

describe('waves', () => {
  test('put what is resident first and leave room for the next one', () => {
    const cache = createExpertCache({ slots: 8, topK: 2, policy: 'lru' })
    cache.commit(cache.plan(0, [5, 7]))
    const { order, length, room } = cache.waves(0, range(10), 'tokens')
    expect([Array.from(order), length, room]).toEqual([[5, 7, 0, 1, 2, 3, 4, 6, 8, 9], 4, 8])
    expect(cache.waves(0, range(8), 'tokens')).toEqual({
      order: Int32Array.from(range(8)),
      length: 8,
      room: 8
    })
    expect(cache.waves(0, range(8), 'prompt').room).toBe(6)
  })

  test.each(policyNames)('of any union read each expert once (%s)', (policy) => {
    const union = fc.uniqueArray(fc.nat(15), { minLength: 1, maxLength: 16 })
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(3), union), { maxLength: 12 }), (passes) => {
        const trace = new RoutingTrace(1)
        for (const [layer, ids] of passes) trace.record(layer, ids, ids.length)
        const { hits, misses, pinned } = replay(trace, { slots: 5, policy })
        expect([hits + misses, pinned]).toEqual([passes.reduce((sum, [, ids]) => sum + ids.length, 0), 0])
      }),
      { seed: 20 }
    )
  })
})

describe('an own policy', () => {
  test('is followed: most recently used first equals Belady on a circle', () => {
    const circle = traceOf(
      1,
      Array.from({ length: 200 }, (_, i): Use => [i % 20, 0])
    )
    const { hitRate } = replay(circle, { slots: 12, policy: mru() })
    expect(hitRate).toBe(belady(circle, 12).hitRate)
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
