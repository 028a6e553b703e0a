import type { CacheStats, PolicyName } from '@k3/moe-cache'
import { belady, type ReplayStats, type RoutingTrace, replay } from '@k3/moe-cache/traces'
import type { Capacity } from './capacities.js'

/** The name under which the policy that knows the future is shown. */
export const BEST = 'belady'

/** Hit rates, 0 to 1, of one policy at one size: over the whole trace, and over what comes after the warm-up. */
export interface HitRate {
  readonly policy: PolicyName | typeof BEST
  readonly slots: number
  readonly bytes: number
  readonly hits: number
  readonly misses: number
  readonly whole: number
  readonly later: number
  readonly layers: CacheStats['layers']
}

/** Records of the first part of a trace, cut between two tokens. */
export const warmupRecords = (trace: RoutingTrace, share: number): number => {
  for (let i = Math.floor(trace.length * share); i < trace.length; i++) {
    if (i === 0 || trace.layerAt(i) === trace.layerAt(0)) return i
  }
  return trace.length
}

/** What the policies, and the one that knows the future, hit in a trace at each size; `from`: see `ReplayOptions`. */
export const hitRates = (
  trace: RoutingTrace,
  sizes: readonly Capacity[],
  policies: readonly PolicyName[],
  from: number
): HitRate[] =>
  sizes.flatMap(({ slots, bytes }) => [
    ...policies.map((policy) => ({ policy, bytes, ...ratesOf(replay(trace, { slots, policy, from })) })),
    { policy: BEST, bytes, ...ratesOf(belady(trace, slots, from)) } as const
  ])

const ratesOf = ({ slots, hits, misses, hitRate, laterHitRate, layers }: ReplayStats) => ({
  ...{ slots, hits, misses, layers },
  whole: hitRate,
  later: laterHitRate
})
