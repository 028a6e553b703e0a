import { checkInteger, ExpertCacheError } from './errors.js'
import { IndexedHeap } from './indexed-heap.js'
import { MAX_EXPERTS, MAX_SLOTS } from './limits.js'
import type { RoutingTrace } from './routing-trace.js'

const NEVER = Number.MAX_SAFE_INTEGER

/** Gives each (layer, expert) of the trace a small number, in order of appearance: [requests]. */
const numberKeys = (trace: RoutingTrace): Int32Array => {
  const numberOf = new Map<number, number>()
  const numbers = new Int32Array(trace.length * trace.topK)
  for (let i = 0; i < trace.length; i++) {
    for (const [j, expert] of trace.expertsAt(i).entries()) {
      const key = trace.layerAt(i) * MAX_EXPERTS + expert
      let number = numberOf.get(key)
      if (number === undefined) {
        number = numberOf.size
        numberOf.set(key, number)
      }
      numbers[i * trace.topK + j] = number
    }
  }
  return numbers
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
 * Hit rate, 0 to 1, of the policy that knows the future: it evicts the expert whose next use is farthest away. Every
 * real policy stays at or below it, so it says how much is left to win. O(n log slots) for n requests.
 * Source: L. A. Belady, A study of replacement algorithms for a virtual-storage computer, 1966.
 * @throws ERR_MOE_CACHE_TOO_FEW_SLOTS when there are fewer slots than the trace's topK
 * @throws ERR_MOE_CACHE_ARGUMENT (RangeError) when slots is not a positive integer
 */
export const belady = (trace: RoutingTrace, slots: number): number => {
  checkInteger('slots', slots, 1, MAX_SLOTS)
  if (slots < trace.topK) {
    throw new ExpertCacheError(
      'ERR_MOE_CACHE_TOO_FEW_SLOTS',
      `the trace uses ${trace.topK} experts at once, found ${slots} slots; give at least ${trace.topK}`,
      { slots, topK: trace.topK }
    )
  }
  const keys = numberKeys(trace)
  const next = nextUses(keys)
  const resident = new IndexedHeap()
  const isResident = new Set<number>()
  let hits = 0
  for (const [i, key] of keys.entries()) {
    if (isResident.has(key)) hits++
    else {
      if (isResident.size === slots) {
        const farthest = resident.first()
        resident.remove(farthest)
        isResident.delete(farthest)
      }
      isResident.add(key)
    }
    resident.set(key, -next[i]!, key)
  }
  return keys.length === 0 ? 0 : hits / keys.length
}
