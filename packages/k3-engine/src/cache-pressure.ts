import type { Checkpoint } from './checkpoint/types.js'
import type { DiskExperts } from './experts.js'
import type { MemoryPlan } from './memory/plan.js'
import { CacheGovernor, type PressureReading, pressureReader } from './memory/pressure.js'

// Files of the kernel are read at most this often; PSI itself averages over ten seconds.
const PAUSE_MS = 1000
// A cache this small gives nothing that anybody would feel.
const LEAST_CACHE_BYTES = 256e6

/** Gives memory of the expert cache back between tokens while others need it, and takes it again; no bit depends on it. */
export const cachePressure = (
  experts: DiskExperts,
  { config }: Checkpoint,
  { cacheSlots: plannedSlots }: MemoryPlan,
  injected: (() => PressureReading) | undefined
): (() => void) => {
  const slotBytes = Math.floor(experts.region.bytes / plannedSlots)
  const governor = new CacheGovernor({ leastSlots: config.moe.topK, plannedSlots, slotBytes })
  const adapt = (reading: PressureReading) => {
    const slots = governor.next(experts.slots, reading)
    if (slots !== experts.slots) experts.resize(slots)
  }
  if (injected !== undefined) return () => adapt(injected())
  if (experts.region.bytes < LEAST_CACHE_BYTES) return () => undefined
  const readPressure = pressureReader()
  let readAtMs = performance.now()
  return () => {
    const now = performance.now()
    if (now - readAtMs < PAUSE_MS) return
    readAtMs = now
    adapt(readPressure())
  }
}
