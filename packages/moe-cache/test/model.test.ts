import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, test } from 'vitest'
import {
  createExpertCache,
  type ExpertCache,
  ExpertCacheError,
  type ExpertPlan,
  type PolicyName,
  policyNames
} from '../src/index.js'
import type { PlanUse } from '../src/plan-use.js'
import { NaiveCache, type NaivePlan } from './naive-cache.js'

const TOP_K = 3
const LAYERS = 4
const EXPERTS = 8

type Step =
  | { readonly act: 'plan'; readonly layer: number; readonly ids: number[]; readonly use: PlanUse }
  | { readonly act: 'commit' | 'abort'; readonly which: number }
  | { readonly act: 'resize'; readonly slots: number }
  | { readonly act: 'clear' }

const ids = fc.uniqueArray(fc.integer({ min: 0, max: EXPERTS - 1 }), { minLength: 1, maxLength: 6 })
const layer = fc.integer({ min: 0, max: LAYERS - 1 })
const use = fc.constantFrom<PlanUse>('token', 'token', 'tokens', 'prompt', 'ahead')
const which = fc.nat(3)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ act: fc.constant('plan'), layer, ids, use }) },
  { weight: 10, arbitrary: fc.record({ act: fc.constant('commit'), which }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('abort'), which }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('resize'), slots: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('clear') }) }
)

const codeOf = (action: () => void): string | undefined => {
  try {
    action()
  } catch (error) {
    if (error instanceof ExpertCacheError) return error.code
    throw error
  }
  return undefined
}

interface Pair {
  readonly real: ExpertPlan
  readonly naive: NaivePlan
}

/** The cache, its naive twin, and a memory whose slots hold the key that was last read into them. */
class Bench {
  readonly cache: ExpertCache
  readonly naive: NaiveCache
  readonly memory = new Map<number, string>()
  readonly usable: Set<number>
  readonly open: Pair[] = []
  requests = 0

  constructor(slots: number, policy: PolicyName) {
    this.cache = createExpertCache({ slots, topK: TOP_K, policy })
    this.naive = new NaiveCache(slots, TOP_K, policy)
    this.usable = new Set(Array.from({ length: slots }, (_, slot) => slot))
  }

  run(step: Step): void {
    if (step.act === 'plan') this.plan(step)
    else if (step.act === 'resize') this.resize(step.slots)
    else if (step.act === 'clear') this.clear()
    else if (this.open.length > 0) this.close(step.act, this.open[step.which % this.open.length]!)
    this.checkState()
  }

  plan({ layer, ids, use }: Extract<Step, { act: 'plan' }>): void {
    const naive = this.naive.plan(layer, ids, use)
    let real: ExpertPlan | undefined
    const code = codeOf(() => {
      real = this.cache.plan(layer, ids, use)
    })
    assert.equal(code, typeof naive === 'string' ? naive : undefined)
    if (typeof naive === 'string' || real === undefined) return
    this.requests += ids.length
    this.checkPlan(real, naive)
    for (const i of real.misses.subarray(0, real.missCount)) this.memory.set(real.slots[i]!, 'half read')
    this.open.push({ real, naive })
  }

  close(act: 'commit' | 'abort', pair: Pair): void {
    const { real, naive } = pair
    const { layer, slots, experts, count, misses, missCount } = real
    if (act === 'commit') {
      for (const i of misses.subarray(0, missCount)) this.memory.set(slots[i]!, `${layer}:${experts[i]}`)
      const code = this.naive.commit(naive)
      const held = Array.from(
        { length: count },
        (_, i) => this.memory.get(slots[i]!) === `${layer}:${experts[i]}`
      )
      assert.equal(
        codeOf(() => this.cache.commit(real)),
        code
      )
      if (code !== undefined) return
      assert.ok(!held.includes(false))
    } else {
      this.naive.abort(naive)
      this.cache.abort(real)
    }
    assert.equal(real.count + real.hitCount + real.joinedCount + real.missCount, 0)
    this.open.splice(this.open.indexOf(pair), 1)
  }

  resize(slots: number): void {
    const before = this.cache.slots
    let changed = new Int32Array(0)
    const code = codeOf(() => {
      changed = Int32Array.from(this.cache.resize(slots))
    })
    assert.equal(code, this.naive.resize(slots))
    if (code !== undefined) return
    assert.equal(changed.length, Math.abs(slots - before))
    for (const slot of changed) {
      assert.equal(this.usable.has(slot), slots < before)
      if (slots < before) this.usable.delete(slot)
      else this.usable.add(slot)
    }
  }

  clear(): void {
    const code = codeOf(() => this.cache.clear())
    assert.equal(code, this.naive.clear())
    if (code === undefined) this.requests = 0
  }

  checkPlan(real: ExpertPlan, naive: NaivePlan): void {
    const expertsAt = (positions: Int32Array, count: number): number[] =>
      Array.from(positions.subarray(0, count), (i) => real.experts[i]!)
    assert.deepEqual(
      expertsAt(real.hits, real.hitCount),
      naive.hits.map((entry) => entry.expert)
    )
    assert.deepEqual(
      expertsAt(real.joined, real.joinedCount),
      naive.joined.map((entry) => entry.expert)
    )
    assert.deepEqual(
      expertsAt(real.misses, real.missCount),
      naive.misses.map((entry) => entry.expert)
    )

    const held = new Map<number, string>()
    for (const plan of [real, ...this.open.map((pair) => pair.real)]) {
      for (let i = 0; i < plan.count; i++) {
        const key = `${plan.layer}:${plan.experts[i]}`
        const slot = plan.slots[i]!
        assert.equal(this.usable.has(slot), true)
        if (this.cache.has(plan.layer, plan.experts[i]!) || plan === real) {
          assert.equal(held.get(slot) ?? key, key)
          held.set(slot, key)
        }
      }
    }
    for (const i of real.hits.subarray(0, real.hitCount)) {
      assert.equal(this.memory.get(real.slots[i]!), `${real.layer}:${real.experts[i]}`)
    }
    const taken = this.open.flatMap(({ real: other }) => Array.from(other.slots.subarray(0, other.count)))
    for (const i of real.misses.subarray(0, real.missCount)) assert.ok(!taken.includes(real.slots[i]!))
  }

  checkState(): void {
    const { hits, misses, evictions, resident, pinned, slots } = this.cache.stats()
    assert.equal(hits + misses, this.requests)
    assert.deepEqual(
      { hits, misses, evictions, pinned, slots },
      {
        hits: this.naive.hits,
        misses: this.naive.misses,
        evictions: this.naive.evictions,
        pinned: this.naive.pinned,
        slots: this.naive.slots
      }
    )
    const keys = []
    for (let l = 0; l < LAYERS; l++)
      for (let e = 0; e < EXPERTS; e++) if (this.cache.has(l, e)) keys.push(`${l}:${e}`)
    assert.deepEqual(keys, this.naive.resident.sort())
    assert.equal(resident, keys.length)
    assert.equal(this.usable.size, slots)
    assert.equal(this.cache.scanSlots, this.naive.scanSlots)
  }
}

describe.each(policyNames)('%s cache', (policy) => {
  test('equals the naive cache after every step of any session', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: TOP_K, max: 14 }),
        fc.array(step, { minLength: 30, maxLength: 90 }),
        (slots, steps) => {
          const bench = new Bench(slots, policy)
          for (const each of steps) bench.run(each)
          while (bench.open.length > 0) bench.close('abort', bench.open[0]!)
          bench.checkState()
          assert.equal(bench.cache.stats().pinned, 0)
        }
      ),
      { numRuns: 100, seed: 20 }
    )
  })
})
