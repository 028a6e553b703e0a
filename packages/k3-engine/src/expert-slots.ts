import type { ExpertPlan } from '@k3/moe-cache'
import { allocRegion, type Batch, paddedBytes, type Reader, type Region } from '@k3/uring'
import type { Checkpoint } from './checkpoint/types.js'

// The reader's contract: a byte keeps its position within a page of this size.
const PAGE_BYTES = 4096

/** Bytes of memory one expert slot takes, whatever the expert's position in its file. */
export const expertSlotBytes = (expertBytes: number): number => paddedBytes(PAGE_BYTES - 1, expertBytes)

/** The memory of the slots, and reads of experts into them. */
export class ExpertSlots {
  readonly region: Region
  /** Bytes asked of the disk. */
  bytesRead = 0
  readonly #checkpoint: Checkpoint
  readonly #reader: Reader
  readonly #slotBytes: number

  /** The reader's files are those of the checkpoint; it stays the caller's. `nodes`: NUMA nodes the memory is spread over. */
  constructor(checkpoint: Checkpoint, reader: Reader, slots: number, nodes: readonly number[]) {
    const moeLayers = checkpoint.plan.filter(({ ffn }) => ffn === 'moe')
    const expertBytes = Math.max(...moeLayers.map(({ index }) => checkpoint.experts(index).bytes))
    this.#checkpoint = checkpoint
    this.#reader = reader
    this.#slotBytes = expertSlotBytes(expertBytes)
    this.region = allocRegion(this.#slotBytes * slots, { interleave: nodes })
  }

  /** Where the expert in `slot` starts in the region: reads keep a byte's position within its page. */
  baseOf(layer: number, expert: number, slot: number): number {
    return slot * this.#slotBytes + (this.#checkpoint.experts(layer).base(expert) % PAGE_BYTES)
  }

  /** Gives the memory of these slots back; it comes again when something is read into them. */
  discard(slots: Int32Array): void {
    for (const slot of slots) this.region.discard(slot * this.#slotBytes, this.#slotBytes)
  }

  expertBytes(layer: number): number {
    return this.#checkpoint.experts(layer).bytes
  }

  /** The misses of a plan in the order of their bytes in the file, which is the order in which they will arrive. */
  missesInFileOrder({ layer, experts, misses, missCount }: ExpertPlan): Int32Array {
    const area = this.#checkpoint.experts(layer)
    return misses.slice(0, missCount).sort((a, b) => area.base(experts[a]!) - area.base(experts[b]!))
  }

  /** Starts to read the experts at these positions of a plan, as one batch. */
  read({ layer, experts, slots }: ExpertPlan, positions: Int32Array, urgency: 0 | 2): Batch {
    const area = this.#checkpoint.experts(layer)
    this.bytesRead += positions.length * area.bytes
    return this.#reader.submit(
      Array.from(positions, (i) => ({
        file: area.file,
        offset: area.base(experts[i]!),
        length: area.bytes,
        region: this.region,
        at: slots[i]! * this.#slotBytes
      })),
      urgency
    )
  }

  /** Gives the memory back; nothing may be read into it any more. */
  close(): void {
    // ops that are still bound keep the region until they are collected, but need none of its bytes
    try {
      this.region.discard(0, this.region.bytes)
    } finally {
      this.region.close()
    }
  }
}
