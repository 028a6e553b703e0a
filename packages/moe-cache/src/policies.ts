import { badArgument } from './errors.js'
import type { EvictionPolicy } from './eviction-policy.js'
import { layerLru } from './layer-lru.js'
import { lfu } from './lfu.js'
import { lru } from './lru.js'
import { nextUse } from './next-use.js'
import { s3Fifo } from './s3-fifo.js'

const BUILT_IN = { lru, lfu, 'layer-lru': layerLru, 's3-fifo': s3Fifo, 'next-use': nextUse }

/** A policy the package comes with. */
export type PolicyName = keyof typeof BUILT_IN

/** Every `PolicyName`. */
export const policyNames = Object.keys(BUILT_IN) as readonly PolicyName[]

/** A fresh built-in policy, or the caller's own. @throws ERR_MOE_CACHE_ARGUMENT (RangeError) for another name */
export const resolvePolicy = (policy: PolicyName | EvictionPolicy, topK: number): EvictionPolicy => {
  if (typeof policy === 'object' && policy !== null) return policy
  if (Object.hasOwn(BUILT_IN, policy)) return BUILT_IN[policy](topK)
  throw badArgument(
    `policy must be one of ${policyNames.join(', ')} or an EvictionPolicy, found ${String(policy)}`
  )
}
