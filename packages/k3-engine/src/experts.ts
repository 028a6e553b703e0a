import { createExpertCache, type EvictionPolicy, type ExpertCache, type ExpertPlan } from '@k3/moe-cache'
import { allocRegion, type Batch, openReader, paddedBytes, type Reader, type Region } from '@k3/uring'
import type { Checkpoint } from './checkpoint/types.js'
import type { ExpertBatch, ExpertSource } from './interfaces.js'

/** Settings of `DiskExperts`. */
export interface DiskExpertsSettings {
  /** Experts kept in memory, over all layers. */
  readonly slots: number
  readonly policy: 'lru' | 'lfu' | 'layer-lru' | EvictionPolicy
  readonly backend: 'auto' | 'io_uring' | 'pread'
  readonly direct: 'auto' | 'on' | 'off'
  /** Called once for each expert that was read, before anything multiplies with it; throws when it is unusable. */
  readonly inspect: (layer: number, expert: number, base: number) => void
}

/** Counts since the source was opened. */
export interface ExpertTraffic {
  readonly hits: number
  readonly misses: number
  /** Bytes asked of the disk for experts. */
  readonly bytesRead: number
}

// The reader's contract: a byte keeps its position within a page of this size.
const PAGE_BYTES = 4096

/** Bytes of memory one expert slot takes, whatever the expert's position in its file. */
export const expertSlotBytes = (expertBytes: number): number => paddedBytes(PAGE_BYTES - 1, expertBytes)

/** Experts streamed from the shards into a cache of page-aligned slots: one batch of reads for the misses of a layer. */
export class DiskExperts implements ExpertSource {
  readonly region: Region
  readonly slots: number
  readonly #checkpoint: Checkpoint
  readonly #settings: DiskExpertsSettings
  readonly #cache: ExpertCache
  readonly #reader: Reader
  readonly #slotBytes: number
  #bytesRead = 0

  constructor(checkpoint: Checkpoint, settings: DiskExpertsSettings) {
    const moeLayers = checkpoint.plan.filter(({ ffn }) => ffn === 'moe')
    const expertBytes = Math.max(...moeLayers.map(({ index }) => checkpoint.experts(index).bytes))
    this.slots = settings.slots
    this.#checkpoint = checkpoint
    this.#settings = settings
    this.#cache = createExpertCache({
      slots: settings.slots,
      topK: checkpoint.config.moe.topK,
      policy: settings.policy
    })
    this.#slotBytes = expertSlotBytes(expertBytes)
    this.region = allocRegion(this.#slotBytes * settings.slots)
    this.#reader = openReader(checkpoint.files, { direct: settings.direct, backend: settings.backend })
  }

  begin(layer: number, ids: Int32Array): ExpertBatch {
    const area = this.#checkpoint.experts(layer)
    const plan = this.#cache.plan(layer, ids)
    const reads = []
    for (let m = 0; m < plan.missCount; m++) {
      const i = plan.misses[m]!
      const at = plan.slots[i]! * this.#slotBytes
      reads.push({ file: area.file, offset: area.base(ids[i]!), length: area.bytes, region: this.region, at })
    }
    this.#bytesRead += reads.length * area.bytes
    try {
      const batch = reads.length === 0 ? null : this.#reader.submit(reads)
      return new DiskBatch(this, plan, batch)
    } catch (error) {
      this.#cache.abort(plan)
      throw error
    }
  }

  /** Where the expert in `slot` starts in the region: reads keep a byte's position within its page. */
  baseOf(layer: number, expert: number, slot: number): number {
    return slot * this.#slotBytes + (this.#checkpoint.experts(layer).base(expert) % PAGE_BYTES)
  }

  inspect(layer: number, expert: number, base: number): void {
    this.#settings.inspect(layer, expert, base)
  }

  close(plan: ExpertPlan, keep: boolean): void {
    if (keep) this.#cache.commit(plan)
    else this.#cache.abort(plan)
  }

  /** How experts are read, e.g. `io_uring, direct`. */
  get backend(): string {
    const { backend, files } = this.#reader.info
    return `${backend}, ${files.every(({ direct }) => direct) ? 'direct' : 'through the page cache'}`
  }

  traffic(): ExpertTraffic {
    const { hits, misses } = this.#cache.stats()
    return { hits, misses, bytesRead: this.#bytesRead }
  }

  async dispose(): Promise<void> {
    await this.#reader.close()
    this.region.close()
  }
}

class DiskBatch implements ExpertBatch {
  readonly #owner: DiskExperts
  readonly #plan: ExpertPlan
  readonly #reads: Batch | null

  constructor(owner: DiskExperts, plan: ExpertPlan, reads: Batch | null) {
    this.#owner = owner
    this.#plan = plan
    this.#reads = reads
  }

  take(i: number): number {
    const { layer, experts, slots, misses, missCount } = this.#plan
    const base = this.#owner.baseOf(layer, experts[i]!, slots[i]!)
    let miss = 0
    while (miss < missCount && misses[miss] !== i) miss++
    if (miss < missCount) {
      this.#reads!.wait(miss)
      this.#owner.inspect(layer, experts[i]!, base)
    }
    return base
  }

  end(): void {
    this.#owner.close(this.#plan, true)
  }

  abort(): void {
    // a slot may be claimed again at once, so no read may still be writing into it
    for (let miss = 0; miss < this.#plan.missCount; miss++) settle(this.#reads!, miss)
    this.#owner.close(this.#plan, false)
  }
}

/** Waits for a read whatever becomes of it; false when it failed, which changes nothing: the batch is given up. */
const settle = (reads: Batch, index: number): boolean => {
  try {
    reads.wait(index)
    return true
  } catch {
    return false
  }
}
