import { Counters } from './cache-stats.js'
import { checkInteger, ExpertCacheError } from './errors.js'
import { IndexedHeap } from './indexed-heap.js'
import { MAX_EXPERTS, MAX_SLOTS } from './limits.js'
import { type ReplayStats, withLater } from './replay.js'
import type { RoutingTrace } from './routing-trace.js'

const NEVER = Number.MAX_SAFE_INTEGER

/** The requests of a trace: for each, a small number that stands for its (layer, expert), and its record. */
const requestsOf = (trace: RoutingTrace): { keys: Int32Array; records: Int32Array } => {
  const numberOf = new Map<number, number>()
  const keys: number[] = []
  const records: number[] = []
  for (let i = 0; i < trace.length; i++) {
    for (const expert of trace.unionAt(i)) {
      const key = trace.layerAt(i) * MAX_EXPERTS + expert
      let number = numberOf.get(key)
      if (number === undefined) {
        number = numberOf.size
        numberOf.set(key, number)
      }
      keys.push(number)
      records.push(i)
    }
  }
  return { keys: Int32Array.from(keys), records: Int32Array.from(records) }
}

/** For each request, the index of the next request of the same key, or NEVER: [requests]. */
const nextUses = (keys: Int32Array): Float64Array => {
  const nextOf = new Map<number, number>()
  const next = new Float64Array(keys.length).fill(NEVER)
  for (let i = keys.length - 1; i >= 0; i--) {
    const later = nextOf.get(keys[i]!)
    if (later !== undefined) next[i] = later
    nextOf.set(keys[i]!, i)
  }
  return next
}

/**
 * Counts of the policy that knows the future: it evicts the expert whose next use is farthest away. Every real policy
 * stays at or below its `hitRate`, so it says how much is left to win. Requests of a record count one after the other.
 * O(n log slots) for n requests. `from`: record from which `laterHitRate` counts.
 * Source: L. A. Belady, A study of replacement algorithms for a virtual-storage computer, 1966.
 * @throws ERR_MOE_CACHE_TOO_FEW_SLOTS when there are fewer slots than the trace's topK
 * @throws ERR_MOE_CACHE_ARGUMENT (RangeError) when slots is not a positive integer
 */
export const belady = (trace: RoutingTrace, slots: number, from = 0): ReplayStats => {
  checkInteger('slots', slots, 1, MAX_SLOTS)
  if (slots < trace.topK) {
    throw new ExpertCacheError(
      'ERR_MOE_CACHE_TOO_FEW_SLOTS',
      `the trace uses ${trace.topK} experts at once, found ${slots} slots; give at least ${trace.topK}`,
      { slots, topK: trace.topK }
    )
  }
  const { keys, records } = requestsOf(trace)
  const next = nextUses(keys)
  const resident = new IndexedHeap()
  const isResident = new Set<number>()
  const counters = new Counters()
  let before = counters.snapshot(slots, 0, 0)
  for (const [i, key] of keys.entries()) {
    if (records[i] === from && records[i - 1] !== from) before = counters.snapshot(slots, isResident.size, 0)
    const isHit = isResident.has(key)
    counters.add(trace.layerAt(records[i]!), isHit ? 1 : 0, isHit ? 0 : 1)
    if (!isHit && isResident.size === slots) {
      const farthest = resident.first()
      resident.remove(farthest)
      isResident.delete(farthest)
      counters.evictions++
    }
    isResident.add(key)
    resident.set(key, -next[i]!, key)
  }
  const whole = counters.snapshot(slots, isResident.size, 0)
  return withLater(whole, from >= trace.length ? whole : before)
}
