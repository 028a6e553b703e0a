/**
 * Hits of the expert cache in percent, by the number of tokens whose experts it could hold if they were all different.
 * From replays of the recorded routing of 12 tokens (LRU; data/README of the trace) and, beyond two tokens, what
 * kimi-k3-in-c measured at 49 to 109 GB of cache.
 */
const CURVE: readonly (readonly [tokens: number, percent: number])[] = [
  [0, 0],
  [0.99, 0],
  [1, 20.6],
  [1.39, 29.9],
  [1.9, 32.2],
  [2.4, 33.1],
  [2.98, 35.5],
  [4.22, 43.8]
]

/** The share of a token's experts found in a cache of `slots`, of `experts` in all, of which a token uses `tokenExperts`. */
export const expectedHitRate = (slots: number, experts: number, tokenExperts: number): number => {
  if (experts === 0 || slots >= experts) return 1
  const tokens = slots / tokenExperts
  const points = [
    ...CURVE.filter(([at]) => at < experts / tokenExperts),
    [experts / tokenExperts, 100] as const
  ]
  const next = points.findIndex(([at]) => at > tokens)
  const [low, high] = [points[next - 1]!, points[next]!]
  return (low[1] + ((high[1] - low[1]) * (tokens - low[0])) / (high[0] - low[0])) / 100
}
