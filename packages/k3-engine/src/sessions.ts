export { PrefixCache, type PrefixCacheOptions } from './prefix-cache.js'
export type { RunOptions, Session } from './session.js'
