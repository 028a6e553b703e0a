import { type CacheStats, Counters } from './cache-stats.js'
import { badArgument, checkInteger, ExpertCacheError } from './errors.js'
import type { EvictionPolicy } from './eviction-policy.js'
import { type ExpertPlan, OpenPlan, PlanArrays } from './expert-plan.js'
import { grownFloat } from './growable.js'
import { MAX_EXPERTS, MAX_LAYERS, MAX_SLOTS } from './limits.js'
import { checkUse, type PlanUse } from './plan-use.js'
import { type PolicyName, resolvePolicy } from './policies.js'
import { SlotStore } from './slot-store.js'

/** What `createExpertCache` needs to know. */
export interface ExpertCacheOptions {
  /** Slots in total, over all layers. At least topK. */
  readonly slots: number
  /** Experts the router picks for one token: the smallest plan that must always fit. */
  readonly topK: number
  /** A built-in policy by name, or your own; an own one serves a single cache. */
  readonly policy: PolicyName | EvictionPolicy
}

const EXPECTED = -1

/** Which expert sits in which slot. Made by `createExpertCache`; knows numbers only, no bytes and no files. */
export class ExpertCache {
  readonly #topK: number
  readonly #store: SlotStore
  readonly #counters = new Counters()
  readonly #spareArrays: PlanArrays[] = []
  readonly #openPlans = new Set<OpenPlan>()
  /** Serial of the last plan that named the expert id, whatever its layer: finds repeats without a set. */
  #namedBy = new Float64Array(0)
  #serial = 0

  constructor(options: ExpertCacheOptions) {
    const { slots, topK, policy } = options
    checkInteger('topK', topK, 1, MAX_EXPERTS)
    checkInteger('slots', slots, 1, MAX_SLOTS)
    this.#topK = topK
    this.#refuseBelowTopK(slots)
    this.#store = new SlotStore(resolvePolicy(policy, topK), topK)
    this.#store.grow(slots)
  }

  /** Slots in use. Slot numbers stay below the largest value this ever had. */
  get slots(): number {
    return this.#store.count
  }

  /**
   * The most experts a plan of a prompt can miss without evicting what the policy keeps: slots that are free or hold
   * what a prompt left, or else an eighth of all, at least topK.
   */
  get scanSlots(): number {
    return this.#store.scanSlots
  }

  /**
   * Pins the experts of `layer` that are in the cache, and only then claims a slot for each one that is not.
   *
   * `ids`: [1..slots] distinct experts; `use`: who asks for them (`PlanUse`). What a prompt misses is kept beside the
   * policy and gives way first, the latest before the others, until another use finds it. Several plans may be open; a
   * slot stays pinned until the last of them is closed.
   * Close each plan with `commit` or `abort`. A refusal leaves the cache as it was.
   * @throws ERR_MOE_CACHE_UNION_TOO_LARGE when there are more ids than slots: plan them in slices of at most `slots`
   * @throws ERR_MOE_CACHE_ALL_PINNED when open plans leave too few slots for the misses: close one, then plan again
   * @throws ERR_MOE_CACHE_ARGUMENT (RangeError) when an id repeats, no id is given, a number or the use is out of range
   * @throws ERR_MOE_CACHE_POLICY when a custom policy chooses a slot it may not; experts evicted before that stay so
   */
  plan(layer: number, ids: ArrayLike<number>, use: PlanUse = 'token'): ExpertPlan {
    this.#checkRequest(layer, ids)
    checkUse(use)
    const plan = new OpenPlan(layer, this.#takeArrays(ids.length))
    this.#locate(plan, ids)
    this.#refuseWhenPinned(plan)
    for (let i = 0; i < plan.count; i++) {
      if (plan.slots[i] !== -1) this.#store.pin(plan.slots[i]!, this.#rank(i, use), use === 'prompt')
    }
    this.#openPlans.add(plan)
    this.#claimMisses(plan, use)
    this.#counters.joined += plan.joinedCount
    this.#counters.add(layer, plan.hitCount + plan.joinedCount, plan.missCount)
    return plan
  }

  /**
   * How to plan more ids than there is room for. `order`: the positions in `ids`, what is resident first so that no
   * earlier wave evicts it; plan them `length` at a time, and keep at most `room` in open plans, so that a wave can be
   * read while the one before is used. Changes nothing. For a prompt the room is `scanSlots`.
   */
  waves(
    layer: number,
    ids: ArrayLike<number>,
    use: PlanUse
  ): { order: Int32Array; length: number; room: number } {
    const room = use === 'prompt' ? this.scanSlots : this.slots
    const order = Int32Array.from(ids, (_, i) => i)
    if (ids.length <= room) return { order, length: ids.length, room }
    const isThere = (i: number): boolean => this.has(layer, ids[i]!)
    const sorted = Int32Array.of(...order.filter(isThere), ...order.filter((i) => !isThere(i)))
    return { order: sorted, length: Math.max(1, Math.floor(room / 2)), room }
  }

  /**
   * Declares every miss of the plan filled, makes them resident and unpins the plan's slots.
   * @throws ERR_MOE_CACHE_PLAN_EARLY when a joined slot is still being filled: commit the plan that fills it first
   * @throws ERR_MOE_CACHE_PLAN_LOST when the plan that was to fill a joined slot was aborted: abort, then plan again
   * @throws ERR_MOE_CACHE_PLAN_CLOSED when the plan was closed before or is another cache's
   */
  commit(plan: ExpertPlan): void {
    const open = this.#require(plan)
    this.#refuseUnfilledJoins(open)
    this.#openPlans.delete(open)
    let nextMiss = 0
    for (let i = 0; i < open.count; i++) {
      if (nextMiss < open.missCount && open.misses[nextMiss] === i) {
        nextMiss++
        this.#store.filled(open.slots[i]!)
      } else {
        this.#store.unpin(open.slots[i]!)
      }
    }
    this.#spareArrays.push(open.close())
  }

  /**
   * Gives the plan up: unpins its hits and frees the slots it claimed. What was evicted for it stays evicted, and
   * nothing half-read stays resident. Wait for reads in flight before calling this: the slots can be claimed at once.
   * @throws ERR_MOE_CACHE_PLAN_CLOSED when the plan was closed before or is another cache's
   */
  abort(plan: ExpertPlan): void {
    const open = this.#require(plan)
    this.#openPlans.delete(open)
    this.#release(open, open.missCount)
  }

  /** Whether the expert can be used without a read; one that is still being filled cannot. Changes nothing. */
  has(layer: number, expert: number): boolean {
    const slot = this.#store.slotOf(layer, expert)
    return slot !== -1 && !this.#store.isFilling(slot)
  }

  /**
   * Changes the number of slots, resident experts and open plans included. Growing adds slot numbers, retired ones
   * first; shrinking retires free slots, then evicts by policy, so no expert ever moves to another slot.
   * Returns the slot numbers, ascending, that were added (provide memory) or retired (memory may be released).
   * @throws ERR_MOE_CACHE_TOO_FEW_SLOTS below topK
   * @throws ERR_MOE_CACHE_IN_USE below the number of pinned slots
   * @throws ERR_MOE_CACHE_ARGUMENT (RangeError) when it is not a positive integer
   */
  resize(slots: number): Int32Array {
    checkInteger('slots', slots, 1, MAX_SLOTS)
    this.#refuseBelowTopK(slots)
    const { count, pinned, resident } = this.#store
    if (slots < pinned) {
      throw new ExpertCacheError(
        'ERR_MOE_CACHE_IN_USE',
        `open plans pin ${pinned} of ${count} slots, which is more than the ${slots} asked for; ` +
          'commit or abort them, or keep more slots',
        { slots, pinned }
      )
    }
    if (slots >= count) return this.#store.grow(slots - count)
    const retired = this.#store.shrink(count - slots)
    this.#counters.evictions += resident - this.#store.resident
    return retired
  }

  /** A new snapshot of the counts. */
  stats(): CacheStats {
    return this.#counters.snapshot(this.#store.count, this.#store.resident, this.#store.pinned)
  }

  /**
   * Forgets every expert and zeroes the counts.
   * @throws ERR_MOE_CACHE_IN_USE while a plan is open
   */
  clear(): void {
    if (this.#openPlans.size > 0) {
      throw new ExpertCacheError(
        'ERR_MOE_CACHE_IN_USE',
        `the cache has ${this.#openPlans.size} open plans; commit or abort them before clear()`,
        { plans: this.#openPlans.size, pinned: this.#store.pinned }
      )
    }
    this.#store.empty()
    this.#counters.reset()
  }

  #checkRequest(layer: number, ids: ArrayLike<number>): void {
    checkInteger('layer', layer, 0, MAX_LAYERS - 1)
    checkInteger('the number of ids', ids.length, 1, MAX_EXPERTS)
    if (ids.length > this.slots) {
      throw new ExpertCacheError(
        'ERR_MOE_CACHE_UNION_TOO_LARGE',
        `layer ${layer} asks for ${ids.length} experts at once, but the cache has ${this.slots} slots; ` +
          `plan the union in slices of at most ${this.slots}`,
        { layer, requested: ids.length, slots: this.slots }
      )
    }
    this.#serial++
    for (let i = 0; i < ids.length; i++) {
      const expert = ids[i]!
      checkInteger('each id', expert, 0, MAX_EXPERTS - 1)
      this.#namedBy = grownFloat(this.#namedBy, expert + 1)
      if (this.#namedBy[expert] === this.#serial) {
        throw badArgument(`ids must be distinct, but ids[${i}] repeats expert ${expert}; pass the union once`)
      }
      this.#namedBy[expert] = this.#serial
    }
  }

  #takeArrays(count: number): PlanArrays {
    const spare = this.#spareArrays.pop()
    if (spare !== undefined && spare.capacity >= count) return spare
    return new PlanArrays(Math.max(count, this.#topK))
  }

  /** What the policy is told of position i. */
  #rank(i: number, use: PlanUse): number {
    if (use === 'token') return i
    return use === 'ahead' ? EXPECTED : this.#topK
  }

  /** Sorts the ids into hits, joined and misses; touches nothing. */
  #locate(plan: OpenPlan, ids: ArrayLike<number>): void {
    plan.count = ids.length
    for (let i = 0; i < ids.length; i++) {
      const slot = this.#store.slotOf(plan.layer, ids[i]!)
      plan.experts[i] = ids[i]!
      plan.slots[i] = slot
      if (slot === -1) plan.misses[plan.missCount++] = i
      else if (this.#store.isFilling(slot)) plan.joined[plan.joinedCount++] = i
      else plan.hits[plan.hitCount++] = i
    }
  }

  #refuseWhenPinned(plan: OpenPlan): void {
    let newlyPinned = 0
    for (let i = 0; i < plan.hitCount; i++) {
      if (!this.#store.isPinned(plan.slots[plan.hits[i]!]!)) newlyPinned++
    }
    const claimable = this.#store.claimable - newlyPinned
    if (plan.missCount <= claimable) return
    const { layer, missCount: misses } = plan
    this.#spareArrays.push(plan.close())
    throw new ExpertCacheError(
      'ERR_MOE_CACHE_ALL_PINNED',
      `layer ${layer} misses ${misses} experts, but open plans and its own hits leave ${claimable} of ` +
        `${this.slots} slots to claim; commit or abort an open plan, then plan again`,
      { layer, misses, claimable, pinned: this.#store.pinned, slots: this.slots }
    )
  }

  #claimMisses(plan: OpenPlan, use: PlanUse): void {
    const before = this.#store.resident
    let claimed = 0
    try {
      for (; claimed < plan.missCount; claimed++) {
        const i = plan.misses[claimed]!
        const rank = this.#rank(i, use)
        plan.slots[i] = this.#store.claim(plan.layer, plan.experts[i]!, rank, use === 'prompt')
      }
    } catch (error) {
      this.#openPlans.delete(plan)
      this.#release(plan, claimed)
      throw error
    } finally {
      this.#counters.evictions += before - this.#store.resident
    }
  }

  /** Unpins everything the plan holds and frees its claims, of which the first `claimed` misses exist. */
  #release(plan: OpenPlan, claimed: number): void {
    for (let i = 0; i < plan.hitCount; i++) this.#store.unpin(plan.slots[plan.hits[i]!]!)
    for (let i = 0; i < plan.joinedCount; i++) this.#store.unpin(plan.slots[plan.joined[i]!]!)
    for (let i = 0; i < claimed; i++) this.#store.abandon(plan.slots[plan.misses[i]!]!)
    this.#spareArrays.push(plan.close())
  }

  #refuseUnfilledJoins(plan: OpenPlan): void {
    for (let i = 0; i < plan.joinedCount; i++) {
      const { layer } = plan
      const expert = plan.experts[plan.joined[i]!]!
      const slot = plan.slots[plan.joined[i]!]!
      const where = `expert ${expert} of layer ${layer} in slot ${slot}`
      if (!this.#store.holds(slot, layer, expert)) {
        throw new ExpertCacheError(
          'ERR_MOE_CACHE_PLAN_LOST',
          `the plan that was filling ${where} was aborted; abort this plan too, then plan again`,
          { layer, expert, slot }
        )
      }
      if (this.#store.isFilling(slot)) {
        throw new ExpertCacheError(
          'ERR_MOE_CACHE_PLAN_EARLY',
          `another plan is still filling ${where}; commit that plan first`,
          { layer, expert, slot }
        )
      }
    }
  }

  #require(plan: ExpertPlan): OpenPlan {
    const open = plan as OpenPlan
    if (this.#openPlans.has(open)) return open
    throw new ExpertCacheError(
      'ERR_MOE_CACHE_PLAN_CLOSED',
      'the plan is not open here: it was committed or aborted before, or it belongs to another cache; ' +
        'close each plan once, on the cache that made it'
    )
  }

  #refuseBelowTopK(slots: number): void {
    if (slots >= this.#topK) return
    throw new ExpertCacheError(
      'ERR_MOE_CACHE_TOO_FEW_SLOTS',
      `a token uses ${this.#topK} experts of a layer at once, found ${slots} slots; give at least ${this.#topK}`,
      { slots, topK: this.#topK }
    )
  }
}

/**
 * A cache of `slots` expert slots with the given eviction policy.
 * @throws ERR_MOE_CACHE_TOO_FEW_SLOTS when there are fewer slots than topK
 * @throws ERR_MOE_CACHE_ARGUMENT (RangeError) when a number is not a positive integer or the policy is unknown
 */
export const createExpertCache = (options: ExpertCacheOptions): ExpertCache => new ExpertCache(options)
