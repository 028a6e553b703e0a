import type { EvictionPolicy } from './eviction-policy.js'
import { SlotQueues } from './slot-queues.js'

const ALL = 0

/** Evicts the slot whose last use ended longest ago. O(1). */
export const lru = (): EvictionPolicy => {
  const released = new SlotQueues()
  return {
    touch: (slot) => released.remove(slot),
    release(slot, resident) {
      if (resident) released.append(ALL, slot)
    },
    victim() {
      const slot = released.first(ALL)
      released.remove(slot)
      return slot
    }
  }
}
