import type { EvictionPolicy } from './eviction-policy.js'
import { ExpertTable } from './expert-table.js'
import { grown } from './growable.js'
import { IndexedHeap } from './indexed-heap.js'

/**
 * Evicts the expert used least often, the longest unused one on a tie. Uses count from the first request on and
 * outlive an eviction: counted only while resident, a decoder's circular order leaves every count at 1. O(log slots).
 */
export const lfu = (): EvictionPolicy => {
  const uses = new ExpertTable(0)
  const released = new IndexedHeap()
  let usesInSlot = new Int32Array(0)
  let releases = 0
  return {
    touch(slot, layer, expert) {
      const count = uses.get(layer, expert) + 1
      uses.set(layer, expert, count)
      usesInSlot = grown(usesInSlot, slot + 1, 0)
      usesInSlot[slot] = count
      released.remove(slot)
    },
    release(slot, resident) {
      if (resident) released.set(slot, usesInSlot[slot]!, releases++)
    },
    victim() {
      const slot = released.first()
      released.remove(slot)
      return slot
    }
  }
}
