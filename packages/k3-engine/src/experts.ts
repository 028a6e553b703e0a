import {
  createExpertCache,
  type EvictionPolicy,
  type ExpertCache,
  type PolicyName,
  planUse
} from '@k3/moe-cache'
import type { Reader, Region } from '@k3/uring'
import type { Checkpoint } from './checkpoint/types.js'
import { DiskBatch } from './expert-batch.js'
import { ExpertLookahead, type LookaheadStatistics } from './expert-lookahead.js'
import { ExpertSlots } from './expert-slots.js'
import type { ExpertBatch, ExpertSource } from './interfaces.js'

/** Settings of `DiskExperts`. */
export interface DiskExpertsSettings {
  /** Experts kept in memory, over all layers. */
  readonly slots: number
  /** NUMA nodes their memory is spread over. Default: none, it lies where it is touched first. */
  readonly nodes?: readonly number[]
  readonly policy: PolicyName | EvictionPolicy
  /** Called once for each expert that was read, before anything multiplies with it; throws when it is unusable. */
  readonly inspect: (layer: number, expert: number, base: number) => void
}

/** Counts since the source was opened. */
export interface ExpertTraffic {
  /** Experts a layer asked for that needed no read of their own: resident, or on their way since a prediction. */
  readonly hits: number
  readonly misses: number
  /** Bytes asked of the disk for experts. */
  readonly bytesRead: number
  readonly lookahead: LookaheadStatistics
}

/** Of a model without experts. */
export const NO_EXPERT_TRAFFIC: ExpertTraffic = {
  hits: 0,
  misses: 0,
  bytesRead: 0,
  lookahead: { predicted: [], chosen: [], usedReads: 0, wastedReads: 0, wastedBytes: 0 }
}

/** Experts streamed from the shards into a cache of page-aligned slots: one batch of reads for the misses of a layer. */
export class DiskExperts implements ExpertSource {
  readonly #settings: DiskExpertsSettings
  readonly #cache: ExpertCache
  readonly #slots: ExpertSlots
  readonly #lookahead: ExpertLookahead
  #hits = 0
  #misses = 0

  /** The reader's files are those of the checkpoint; it stays the caller's. */
  constructor(checkpoint: Checkpoint, reader: Reader, settings: DiskExpertsSettings) {
    const { slots, policy, inspect, nodes = [] } = settings
    const { topK } = checkpoint.config.moe
    this.#settings = settings
    this.#cache = createExpertCache({ slots, topK, policy })
    this.#slots = new ExpertSlots(checkpoint, reader, slots, nodes)
    this.#lookahead = new ExpertLookahead({ cache: this.#cache, slots: this.#slots, reserve: topK, inspect })
  }

  get region(): Region {
    return this.#slots.region
  }

  /** Experts that can be kept now. */
  get slots(): number {
    return this.#cache.slots
  }

  /**
   * Keeps fewer experts and gives their memory back, or more again, up to the number there is memory for. Between batches.
   * @throws ERR_MOE_CACHE_TOO_FEW_SLOTS below one token's experts
   */
  resize(slots: number): void {
    this.#lookahead.settle()
    const isFewer = slots < this.#cache.slots
    const changed = this.#cache.resize(slots)
    if (isFewer) this.#slots.discard(changed)
  }

  begin(layer: number, ids: Int32Array, tokens: number): ExpertBatch {
    const lookahead = this.#lookahead
    lookahead.claim(layer, ids)
    if (ids.length > this.#cache.slots - lookahead.pending) lookahead.settle()
    return new DiskBatch({
      cache: this.#cache,
      slots: this.#slots,
      layer,
      ids,
      use: planUse(tokens),
      inspect: this.#settings.inspect,
      awaitJoined: (other, expert) => lookahead.finish(other, expert),
      count: ({ hitCount, joinedCount, missCount }) => {
        this.#hits += hitCount + joinedCount
        this.#misses += missCount
      }
    })
  }

  /** Starts to read what a layer will probably ask for, likeliest first; changes nothing but when bytes arrive. */
  expect(layer: number, ids: Int32Array): void {
    this.#lookahead.predict(layer, ids)
  }

  traffic(): ExpertTraffic {
    return {
      hits: this.#hits,
      misses: this.#misses,
      bytesRead: this.#slots.bytesRead,
      lookahead: this.#lookahead.statistics()
    }
  }

  /** Gives the memory back. Batches have ended. */
  close(): void {
    this.#lookahead.settle()
    this.#slots.close()
  }
}
