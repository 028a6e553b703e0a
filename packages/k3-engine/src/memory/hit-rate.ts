import type { PolicyName } from '@k3/moe-cache'

/** Sizes of a cache, in tokens whose experts it could hold if they were all different. */
const TOKENS: readonly number[] = [
  0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 0.99, 1, 1.2, 1.4, 1.65, 2, 3, 4, 6, 6.8
]

/**
 * Hits in percent at those sizes: the replay of the routing of 12 tokens recorded on the released weights
 * (fixtures/traces/expert_trace.bin), into a cache that is empty at first. The constants of next-use were chosen on this
 * trace among others, so its row is in-sample; the others have none to choose. A token that finds the cache full of
 * earlier ones, as in a longer run, hits more.
 */
const HITS: Record<PolicyName, readonly number[]> = {
  lru: [0, 0, 0, 0, 0, 0, 0, 0, 1.1, 31.5, 31.5, 31.5, 33.4, 37.3, 39.8, 41.6, 43.1, 43.3],
  lfu: [0, 2.2, 4.7, 7.4, 9.5, 11.7, 15.1, 17.6, 18.2, 19.3, 24.6, 27.9, 29.6, 32.6, 40.4, 41.8, 43.1, 43.3],
  'layer-lru': [
    ...[0, 1.5, 3.4, 5.4, 7.8, 10.3, 16.8, 25.7, 30.9],
    ...[31.5, 32.8, 34.4, 36.3, 38.1, 40.5, 41.9, 43.1, 43.3]
  ],
  's3-fifo': [0, 0, 0, 0, 0, 0, 12.9, 17, 17.7, 21.5, 23, 24.2, 31.7, 36, 39.8, 41.3, 43.2, 43.3],
  'next-use': [
    ...[0, 4.6, 9.3, 13.6, 17.1, 19.9, 24.9, 28.7, 30.4],
    ...[30.5, 32.7, 34.4, 35.8, 37.4, 40.2, 41.5, 43.1, 43.3]
  ]
}

/** How many experts there are, and how many of them one token uses, over all layers. */
export interface ExpertCounts {
  readonly experts: number
  readonly tokenExperts: number
}

/** The share of a token's experts, 0 to 1, expected to be found in a cache of `slots` with this policy. */
export const expectedHitRate = (
  policy: PolicyName,
  slots: number,
  { experts, tokenExperts }: ExpertCounts
): number => {
  if (experts === 0 || slots >= experts) return 1
  const tokens = slots / tokenExperts
  const all = experts / tokenExperts
  const next = TOKENS.findIndex((at) => at > tokens)
  const last = next === -1 ? TOKENS.length - 1 : next - 1
  // beyond the last recorded size that is smaller than this model, the line ends where all of its experts are held
  const isRecorded = next !== -1 && TOKENS[next]! < all
  const [from, found] = [TOKENS[last]!, HITS[policy][last]!]
  const [to, more] = isRecorded ? [TOKENS[next]!, HITS[policy][next]!] : [all, 100]
  const recorded = found + ((more - found) * (tokens - from)) / (to - from)
  // what is held is asked for by chance at least, once that is more than the latest token left
  const byChance = tokens < 2 ? 0 : slots / experts
  return Math.max(recorded / 100, byChance)
}
