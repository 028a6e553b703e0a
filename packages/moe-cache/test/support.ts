import type { ExpertPlan } from '../src/index.js'

/** The ids 0, 1, … count − 1, from `first`. */
export const range = (count: number, first = 0): number[] =>
  Array.from({ length: count }, (_, i) => first + i)

/** A plan's answer as plain expert lists. */
export const answer = (plan: ExpertPlan): { hits: number[]; joined: number[]; misses: number[] } => {
  const expertsAt = (positions: Int32Array, count: number): number[] =>
    Array.from(positions.subarray(0, count), (i) => plan.experts[i]!)
  return {
    hits: expertsAt(plan.hits, plan.hitCount),
    joined: expertsAt(plan.joined, plan.joinedCount),
    misses: expertsAt(plan.misses, plan.missCount)
  }
}

/** The slots of a plan, in the order of its ids. */
export const slotsOf = (plan: ExpertPlan): number[] => Array.from(plan.slots.subarray(0, plan.count))
