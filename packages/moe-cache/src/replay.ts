import type { CacheStats } from './cache-stats.js'
import { createExpertCache, type ExpertCache, type ExpertCacheOptions } from './expert-cache.js'
import type { ExpertPlan } from './expert-plan.js'
import { planUse } from './plan-use.js'
import type { RoutingTrace } from './routing-trace.js'

/** How to replay. */
export interface ReplayOptions extends Omit<ExpertCacheOptions, 'topK'> {
  /** Record from which `laterHitRate` counts. Default 0. */
  readonly from?: number
}

/** What a cache made of a trace. */
export interface ReplayStats extends CacheStats {
  /** Hit rate of what comes after the first records, which filled the cache and taught the policy. */
  readonly laterHitRate: number
}

/**
 * Runs a trace through a fresh cache as an engine without lookahead does: the distinct experts of a record in one plan,
 * or in the waves of `cache.waves`. `hitRate` is the figure to compare with that of `belady`.
 * @throws ERR_MOE_CACHE_TOO_FEW_SLOTS when there are fewer slots than the trace's topK
 */
export const replay = (trace: RoutingTrace, { from = 0, ...options }: ReplayOptions): ReplayStats => {
  const cache = createExpertCache({ ...options, topK: trace.topK })
  let before = cache.stats()
  for (let i = 0; i < trace.length; i++) {
    if (i === from) before = cache.stats()
    ask(cache, trace.layerAt(i), trace.unionAt(i), trace.tokensAt(i))
  }
  if (from >= trace.length) before = cache.stats()
  return withLater(cache.stats(), before)
}

/** The counts of a whole trace, and the rate of what came after those of its beginning. */
export const withLater = (whole: CacheStats, before: CacheStats): ReplayStats => {
  const hits = whole.hits - before.hits
  const requests = hits + whole.misses - before.misses
  return { ...whole, laterHitRate: requests === 0 ? 0 : hits / requests }
}

const ask = (cache: ExpertCache, layer: number, ids: Int32Array, tokens: number): void => {
  const use = planUse(tokens)
  const { order, length, room } = cache.waves(layer, ids, use)
  const open: ExpertPlan[] = []
  let held = 0
  for (let at = 0; at < order.length || open.length > 0; ) {
    const wave = order.subarray(at, at + length)
    if (wave.length > 0 && held + wave.length <= room) {
      open.push(
        cache.plan(
          layer,
          wave.map((i) => ids[i]!),
          use
        )
      )
      held += wave.length
      at += wave.length
    } else {
      const first = open.shift()!
      held -= first.count
      cache.commit(first)
    }
  }
}
