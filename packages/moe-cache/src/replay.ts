import type { CacheStats } from './cache-stats.js'
import type { ExpertCacheOptions } from './expert-cache.js'
import { createExpertCache, type ExpertCache } from './expert-cache.js'
import type { ExpertPlan } from './expert-plan.js'
import { planUse } from './plan-use.js'
import type { RoutingTrace } from './routing-trace.js'

/** How to replay. */
export interface ReplayOptions extends Omit<ExpertCacheOptions, 'topK'> {
  /** Records at the start that fill the cache and teach the policy, but are not counted. Default 0. */
  readonly warmup?: number
}

/**
 * Runs a trace through a fresh cache as an engine without lookahead does: the distinct experts of a record in one plan,
 * or in the waves of `cache.waves`. Returns the cache's counts; `hitRate` is the figure to compare with `belady`.
 * @throws ERR_MOE_CACHE_TOO_FEW_SLOTS when there are fewer slots than the trace's topK
 */
export const replay = (trace: RoutingTrace, { warmup = 0, ...options }: ReplayOptions): CacheStats => {
  const cache = createExpertCache({ ...options, topK: trace.topK })
  for (let i = 0; i < trace.length; i++) {
    if (i === warmup) cache.restartCounts()
    ask(cache, trace.layerAt(i), trace.unionAt(i), trace.tokensAt(i))
  }
  if (warmup >= trace.length) cache.restartCounts()
  return cache.stats()
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
