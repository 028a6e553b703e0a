import { ExpertCacheError } from './errors.js'
import type { EvictionPolicy } from './eviction-policy.js'
import { ExpertTable } from './expert-table.js'
import { grown } from './growable.js'
import { PassingSlots } from './passing-slots.js'

const EMPTY = -1
const SCAN_SHARE = 8

/**
 * What each slot holds, how many plans pin it and whether one is filling it. A slot is always exactly one of: free (on
 * the free list), being filled (pinned by the plan that claimed it), resident, lost (its filler gave up while others had
 * joined: empty, and pinned by those), or retired (removed by a shrink).
 *
 * What only a scan has used is passing: the policy hears nothing of it, and it is evicted before anything the policy
 * keeps, the latest first, which is the order in which a circle of scans is best left.
 */
export class SlotStore {
  readonly #policy: EvictionPolicy
  readonly #topK: number
  readonly #passing = new PassingSlots()
  /** (layer, expert) → the slot that holds or is being filled with it. */
  readonly #slotOf = new ExpertTable(EMPTY)
  readonly #free: number[] = []
  readonly #retired: number[] = []
  #layerOf = new Int32Array(0)
  #expertOf = new Int32Array(0)
  #pinsOf = new Int32Array(0)
  #filling = new Int32Array(0)
  #limit = 0
  /** Slots that are not retired. */
  count = 0
  /** Slots with at least one pin. */
  pinned = 0
  /** Slots that hold a complete expert. */
  resident = 0

  constructor(policy: EvictionPolicy, topK: number) {
    this.#policy = policy
    this.#topK = topK
  }

  /** Slots that scans can claim without evicting more of what the policy keeps than their share. */
  get scanSlots(): number {
    return Math.max(this.#scanShare, this.#free.length + this.#passing.released)
  }

  /** Slots a new claim can have now: free ones and those whose expert may be evicted. */
  get claimable(): number {
    return this.count - this.pinned
  }

  /** The slot that holds or is being filled with the expert, or -1. */
  slotOf(layer: number, expert: number): number {
    return this.#slotOf.get(layer, expert)
  }

  isFilling(slot: number): boolean {
    return this.#filling[slot] === 1
  }

  isPinned(slot: number): boolean {
    return this.#pinsOf[slot] !== 0
  }

  holds(slot: number, layer: number, expert: number): boolean {
    return this.#layerOf[slot] === layer && this.#expertOf[slot] === expert
  }

  /** rank: as in `EvictionPolicy.touch`. */
  pin(slot: number, rank: number, isScan: boolean): void {
    if (this.#pinsOf[slot]!++ === 0) {
      this.pinned++
      if (this.#passing.has(slot)) this.#passing.pinned(slot)
    }
    if (this.#passing.has(slot)) {
      if (isScan) return
      this.#passing.end(slot)
    }
    this.#policy.touch(slot, this.#layerOf[slot]!, this.#expertOf[slot]!, rank)
  }

  unpin(slot: number): void {
    if (--this.#pinsOf[slot]! !== 0) return
    this.pinned--
    const resident = this.#expertOf[slot] !== EMPTY
    if (!this.#passing.has(slot)) this.#policy.release(slot, resident)
    else if (resident) this.#passing.unpinned(slot)
    else this.#passing.end(slot)
    if (!resident) this.#free.push(slot)
  }

  /** Gives (layer, expert) a free slot, or evicts for one, and pins it for the plan that fills it. */
  claim(layer: number, expert: number, rank: number, isScan: boolean): number {
    const slot = this.#free.length > 0 ? this.#free.pop()! : this.#evict(layer, isScan)
    this.#layerOf[slot] = layer
    this.#expertOf[slot] = expert
    this.#filling[slot] = 1
    this.#slotOf.set(layer, expert, slot)
    this.#pinsOf[slot] = 1
    this.pinned++
    if (isScan) this.#passing.begin(slot)
    else this.#policy.touch(slot, layer, expert, rank)
    return slot
  }

  /** The claimed slot now holds its expert. */
  filled(slot: number): void {
    this.#filling[slot] = 0
    this.resident++
    this.unpin(slot)
  }

  /** The claimed slot will not be filled. */
  abandon(slot: number): void {
    this.#slotOf.set(this.#layerOf[slot]!, this.#expertOf[slot]!, EMPTY)
    this.#filling[slot] = 0
    this.#expertOf[slot] = EMPTY
    this.unpin(slot)
  }

  /** Adds slots, retired numbers first, and returns their numbers. */
  grow(slots: number): Int32Array {
    const added = new Int32Array(slots)
    for (let i = 0; i < slots; i++) added[i] = this.#retired.length > 0 ? this.#retired.pop()! : this.#limit++
    added.sort()
    this.#layerOf = grown(this.#layerOf, this.#limit, EMPTY)
    this.#expertOf = grown(this.#expertOf, this.#limit, EMPTY)
    this.#pinsOf = grown(this.#pinsOf, this.#limit, 0)
    this.#filling = grown(this.#filling, this.#limit, 0)
    for (let i = slots - 1; i >= 0; i--) this.#free.push(added[i]!)
    this.count += slots
    return added
  }

  /** Retires slots, free ones first and then by policy, and returns their numbers. */
  shrink(slots: number): Int32Array {
    const retired = new Int32Array(slots)
    for (let i = 0; i < slots; i++) {
      retired[i] = this.#free.length > 0 ? this.#free.pop()! : this.#evict(EMPTY, false)
      this.#retired.push(retired[i]!)
      this.count--
    }
    return retired.sort()
  }

  /** Evicts every expert; nothing may be pinned. */
  empty(): void {
    while (this.resident > 0) this.#free.push(this.#evict(EMPTY, false))
  }

  /** Slots that scans may take from the policy. */
  get #scanShare(): number {
    return Math.max(this.#topK, Math.floor(this.count / SCAN_SHARE))
  }

  /** A scan takes more from the policy only while it has less than its share, or when nothing else is left. */
  #evict(layer: number, isScan: boolean): number {
    const released = this.count - this.pinned - this.#free.length
    const mayTake = released > this.#passing.released
    const takes = isScan && this.#passing.count < this.#scanShare && mayTake
    const slot = this.#passing.released > 0 && !takes ? this.#passing.latest() : this.#fromPolicy(layer)
    if (this.#passing.has(slot)) {
      this.#passing.pinned(slot)
      this.#passing.end(slot)
    }
    this.#slotOf.set(this.#layerOf[slot]!, this.#expertOf[slot]!, EMPTY)
    this.#expertOf[slot] = EMPTY
    this.resident--
    return slot
  }

  #fromPolicy(layer: number): number {
    const slot = this.#policy.victim(layer)
    if (!(slot in this.#expertOf) || this.#expertOf[slot] === EMPTY || this.isPinned(slot)) {
      throw new ExpertCacheError(
        'ERR_MOE_CACHE_POLICY',
        `the eviction policy must choose a released slot, found ${String(slot)}, which is ` +
          `${slot in this.#expertOf && this.isPinned(slot) ? 'pinned' : 'not resident'}; fix its victim()`,
        { slot, layer }
      )
    }
    return slot
  }
}
