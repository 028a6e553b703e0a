/**
 * Decides which expert gives up its slot. The cache calls it; pass your own to `createExpertCache`.
 *
 * The policy never has to skip pinned slots: `touch` takes a slot out of its eviction order and `release` puts it
 * back, so `victim` chooses among released slots only. All three are called in the token loop and must not allocate
 * more than amortised growth. A slot number stays below the largest `slots` the cache ever had.
 */
export interface EvictionPolicy {
  /**
   * `slot` holds, or has just been claimed for, this (layer, expert) and is in use until its `release`. It may be
   * touched again before that, by a second plan. `rank`: 0 to topK − 1, the place in the router's order for one token; topK when
   * several tokens used it; -1 when it is only expected, ahead of its layer's turn. What only a prompt uses the policy is
   * not told of.
   */
  touch(slot: number, layer: number, expert: number, rank: number): void
  /** The last user of `slot` is done: it may be evicted from now on, or, when not `resident`, it is to be forgotten. */
  release(slot: number, resident: boolean): void
  /**
   * Chooses a released slot and forgets it. `layer` is the layer that needs room, -1 when it is a shrinking or
   * clearing cache. Called only while a released slot exists.
   */
  victim(layer: number): number
}
