import type { ExpertCache, ExpertPlan } from '@k3/moe-cache'
import type { Batch } from '@k3/uring'
import type { ExpertSlots } from './expert-slots.js'
import { settle, waitFor } from './settle.js'
import { expertName } from './tensor-names.js'

/** What became of predictions since the model was opened. */
export interface LookaheadStatistics {
  /** by rank: experts that were predicted, and those of them that the layer chose */
  readonly predicted: readonly number[]
  readonly chosen: readonly number[]
  /** Predicted experts that were read and chosen, and that were read in vain. */
  readonly usedReads: number
  readonly wastedReads: number
  readonly wastedBytes: number
}

interface Pending {
  readonly layer: number
  readonly expert: number
  readonly plan: ExpertPlan
  readonly batch: Batch
  /** The layer chose without it. */
  isInVain: boolean
}

/** What lookahead works with. */
export interface LookaheadParts {
  readonly cache: ExpertCache
  readonly slots: ExpertSlots
  /** Slots that stay claimable for the experts of one token. */
  readonly reserve: number
  /** Throws when an expert that was read is unusable. */
  readonly inspect: (layer: number, expert: number, base: number) => void
}

const LOOKAHEAD_URGENCY = 2

/**
 * Experts that a layer will probably ask for, read while the drive has nothing better to do. Each is a plan of the cache
 * with its own read: what is asked for is hurried, what is not is given up where no drive has begun it. Neither changes
 * which weights anything is multiplied with.
 */
export class ExpertLookahead {
  readonly #parts: LookaheadParts
  #pending: Pending[] = []
  /** What was predicted last, likeliest first, and what of it is read because of that. */
  #prediction: { layer: number; ids: readonly number[]; reads: Set<number> } | null = null
  /** Keeps those of the prediction that are in memory from being evicted for the others. */
  #held: ExpertPlan | null = null
  readonly #predicted: number[] = []
  readonly #chosen: number[] = []
  #usedReads = 0
  #wastedReads = 0
  #wastedBytes = 0

  constructor(parts: LookaheadParts) {
    this.#parts = parts
  }

  /** Slots that are being filled. */
  get pending(): number {
    return this.#pending.length
  }

  /** Starts to read those of the experts `ids` of `layer`, likeliest first, that are not there. */
  predict(layer: number, ids: Int32Array): void {
    const { cache, slots, reserve } = this.#parts
    this.#letGo()
    this.#sweep()
    const reads = new Set<number>()
    this.#prediction = { layer, ids: Array.from(ids), reads }
    const there = ids.filter((expert) => cache.has(layer, expert))
    const room = cache.slots - this.#pending.length - reserve
    if (there.length > 0 && there.length < room) this.#held = cache.plan(layer, there, 'ahead')
    const most = room - there.length
    for (const expert of ids) {
      if (reads.size >= most) return
      if (cache.has(layer, expert) || this.#find(layer, expert) !== undefined) continue
      this.#read(layer, expert, slots)
      reads.add(expert)
    }
  }

  /** A layer is about to ask for `ids`: what is on its way for them is hurried, the rest given up. */
  claim(layer: number, ids: Int32Array): void {
    this.#letGo()
    this.#sweep()
    this.#count(layer, ids)
    for (const pending of [...this.#pending]) {
      const wasGivenUp = pending.isInVain
      pending.isInVain = pending.layer !== layer || !ids.includes(pending.expert)
      if (pending.isInVain) pending.batch.giveUp()
      else if (wasGivenUp)
        this.#close(pending) // all of it has arrived, or it is read anew
      else pending.batch.hurry()
    }
    this.#sweep()
  }

  /** Waits for an expert on its way. @throws what kept it from arriving, or made it unusable */
  finish(layer: number, expert: number): void {
    const pending = this.#find(layer, expert)
    const fault = pending === undefined ? null : this.#close(pending)
    if (fault !== null) throw fault
  }

  /** Waits for everything on its way. */
  settle(): void {
    this.#letGo()
    for (const pending of this.#pending) {
      pending.batch.giveUp()
      settle(pending.batch, 0)
    }
    this.#sweep()
  }

  statistics(): LookaheadStatistics {
    return {
      predicted: [...this.#predicted],
      chosen: [...this.#chosen],
      usedReads: this.#usedReads,
      wastedReads: this.#wastedReads,
      wastedBytes: this.#wastedBytes
    }
  }

  #read(layer: number, expert: number, slots: ExpertSlots): void {
    const { cache } = this.#parts
    const plan = cache.plan(layer, [expert], 'ahead')
    try {
      const batch = slots.read(plan, Int32Array.of(0), LOOKAHEAD_URGENCY)
      this.#pending.push({ layer, expert, plan, batch, isInVain: false })
    } catch (error) {
      cache.abort(plan)
      throw error
    }
  }

  #find(layer: number, expert: number): Pending | undefined {
    return this.#pending.find((pending) => pending.layer === layer && pending.expert === expert)
  }

  #letGo(): void {
    if (this.#held !== null) this.#parts.cache.commit(this.#held)
    this.#held = null
  }

  /** Hands what has arrived to the cache. A failure is no matter here: who needs the expert will read it and be told. */
  #sweep(): void {
    for (const pending of this.#pending) if (pending.batch.ended(0)) this.#close(pending)
  }

  /** Waits for a read and ends its plan; returns what made it fail, or null. */
  #close(pending: Pending): unknown {
    const { cache, slots, inspect } = this.#parts
    const { layer, expert, plan, batch } = pending
    this.#pending = this.#pending.filter((other) => other !== pending)
    try {
      waitFor(batch, 0, () => expertName(layer, expert))
      inspect(layer, expert, slots.baseOf(layer, expert, plan.slots[0]!))
    } catch (fault) {
      if (this.#prediction?.layer === layer) this.#prediction.reads.delete(expert)
      cache.abort(plan)
      return fault
    }
    cache.commit(plan)
    if (pending.isInVain) this.#waste(layer)
    return null
  }

  /** Compares a prediction with what the layer chose. */
  #count(layer: number, ids: Int32Array): void {
    if (this.#prediction?.layer !== layer) return
    const { ids: predicted, reads } = this.#prediction
    this.#prediction = null
    predicted.forEach((expert, rank) => {
      this.#predicted[rank] = (this.#predicted[rank] ?? 0) + 1
      this.#chosen[rank] = (this.#chosen[rank] ?? 0) + (ids.includes(expert) ? 1 : 0)
    })
    for (const expert of reads) {
      if (ids.includes(expert)) this.#usedReads++
      else if (this.#find(layer, expert) === undefined) this.#waste(layer)
    }
  }

  #waste(layer: number): void {
    this.#wastedReads++
    this.#wastedBytes += this.#parts.slots.expertBytes(layer)
  }
}
