import type { CacheStats } from './cache-stats.js'
import { createExpertCache, type ExpertCacheOptions } from './expert-cache.js'
import type { RoutingTrace } from './routing-trace.js'

/**
 * Runs a trace through a fresh cache, one plan a record, each committed before the next.
 * Returns the cache's final counts; `hitRate` is the figure to compare with `belady`.
 * @throws ERR_MOE_CACHE_TOO_FEW_SLOTS when there are fewer slots than the trace's topK
 */
export const replay = (trace: RoutingTrace, options: Omit<ExpertCacheOptions, 'topK'>): CacheStats => {
  const cache = createExpertCache({ ...options, topK: trace.topK })
  for (let i = 0; i < trace.length; i++) cache.commit(cache.plan(trace.layerAt(i), trace.expertsAt(i)))
  return cache.stats()
}
