import { createLinear, createLinearGroup, type LinearGroup, widen } from '@k3/bf16-linear'
import { allocRegion, type Batch, paddedBytes, type Reader, type Region } from '@k3/uring'
import type { Checkpoint, Extent } from './checkpoint/types.js'
import type { Linears } from './interfaces.js'
import type { NativeChoice } from './layer-parts.js'
import { settle, waitFor } from './settle.js'
import { StreamedLinears, type StreamedPart } from './streamed-linears.js'
import { EMBEDDING, type Trunk } from './trunk.js'
import { type Loading, TrunkRing } from './trunk-ring.js'
import type { TrunkPiece, TrunkSegment } from './trunk-segments.js'
import type { Weights } from './weights-location.js'

/** What trunk weights are read with: after the experts somebody waits for. */
const TRUNK_URGENCY = 1
const PAGE_BYTES = 4096

/** What `StreamedWeights` reads, and through what. */
export interface StreamSources {
  readonly checkpoint: Checkpoint
  readonly segments: readonly TrunkSegment[]
  /** Buffers of the ring. */
  readonly buffers: number
  /** Its files are those of the checkpoint; it stays the caller's, who closes the weights first. */
  readonly reader: Reader
  readonly native: NativeChoice
  /** The most embedding rows that are asked for at once. */
  readonly chunkTokens: number
  /** NUMA nodes the buffers are spread over. */
  readonly nodes: readonly number[]
}

/**
 * Trunk weights read past the page cache into memory of their own: what is pinned once, the rest again for each pass,
 * ahead of the computation. Products point into the buffers; nothing is copied.
 */
export class StreamedWeights implements Trunk {
  bytesRead = 0
  readonly #sources: StreamSources
  readonly #ring: TrunkRing
  /** By place of the ring. */
  readonly #regions = new Map<number, Region>()
  readonly #bufferBytes: number
  readonly #rows: Region
  readonly #rowStride: number

  constructor(sources: StreamSources) {
    const { checkpoint, segments, buffers, chunkTokens } = sources
    this.#sources = sources
    const ends = segments.map(({ isPinned, base, bytes }) => (isPinned ? 0 : base + bytes))
    this.#bufferBytes = Math.max(0, ...ends)
    this.#ring = new TrunkRing(segments, buffers, (segment, place) => this.#load(segment, place))
    this.#rowStride = paddedBytes(PAGE_BYTES - 1, 2 * checkpoint.config.hiddenSize)
    this.#rows = allocRegion(this.#rowStride * chunkTokens)
  }

  linears(names: readonly string[]): Linears {
    const rows = names.map((name) => this.#sources.checkpoint.extent(name).shape[0]!)
    return new StreamedLinears(rows, this.#partsOf(names), (segment) => this.#ring.use(segment))
  }

  vector(name: string): Float32Array {
    const extent = this.#sources.checkpoint.extent(name)
    using region = allocRegion(paddedBytes(extent.offset, extent.bytes))
    waitFor(this.#sources.reader.submit([{ ...readOf(extent), region, at: 0 }]), 0, () => name)
    const offset = extent.offset % PAGE_BYTES
    if (extent.dtype === 'BF16') return widen({ region, offset }, extent.bytes / 2)
    return new Float32Array(region.view(offset, extent.bytes).slice().buffer)
  }

  tensor<Op>(name: string, bind: (weights: Weights) => Op): () => Op {
    const segment = this.#sources.segments.findIndex(({ pieces }) =>
      pieces.some((piece) => piece.name === name)
    )
    const { pieces, base } = this.#sources.segments[segment]!
    const piece = pieces.find((one) => one.name === name)!
    const ops = new Map<number, Op>()
    return () => {
      const place = this.#ring.use(segment)
      const known = ops.get(place)
      if (known !== undefined) return known
      const op = bind({ region: this.#region(place), offset: base + piece.at })
      ops.set(place, op)
      return op
    }
  }

  embed(ids: ArrayLike<number>, out: Float32Array): void {
    const { checkpoint, reader } = this.#sources
    const table = checkpoint.extent(EMBEDDING)
    const width = checkpoint.config.hiddenSize
    const reads = Array.from({ length: ids.length }, (_, row) => ({
      file: table.file,
      offset: table.offset + 2 * ids[row]! * width,
      length: 2 * width,
      region: this.#rows,
      at: row * this.#rowStride
    }))
    this.bytesRead += reads.length * 2 * width
    const batch = reader.submit(reads)
    try {
      reads.forEach(({ offset, at }, row) => {
        waitFor(batch, row, () => EMBEDDING)
        out.set(widen({ region: this.#rows, offset: at + (offset % PAGE_BYTES) }, width), row * width)
      })
    } catch (error) {
      // the next call reads into the same pages, so none of these reads may still be writing there
      batch.giveUp()
      for (let row = 0; row < reads.length; row++) settle(batch, row)
      throw error
    }
  }

  begin(withHead: boolean): void {
    this.#ring.begin(withHead)
  }

  enter(layer: number | null): void {
    this.#ring.use(this.#firstOf(layer))
  }

  end(): void {
    this.#ring.end()
  }

  has(layer: number): boolean {
    return this.#ring.has(this.#firstOf(layer))
  }

  close(): void {
    this.#ring.close()
    this.#rows.close()
    for (const region of this.#regions.values()) {
      // products that are still bound keep a region until they are collected, but need none of its bytes
      try {
        region.discard(0, region.bytes)
      } finally {
        region.close()
      }
    }
    this.#regions.clear()
  }

  #firstOf(layer: number | null): number {
    return this.#sources.segments.findIndex((segment) => segment.layer === layer)
  }

  #load(segment: number, place: number): Loading {
    const region = this.#region(place)
    const read = this.#sources.segments[segment]!
    const reads = read.runs.map((run) => ({ ...run, at: read.base + run.at, region }))
    for (const { length } of reads) this.bytesRead += length
    return new SegmentRead(this.#sources.reader.submit(reads, TRUNK_URGENCY), read)
  }

  #region(place: number): Region {
    const { segments, buffers, nodes } = this.#sources
    let region = this.#regions.get(place)
    if (region === undefined) {
      region = allocRegion(place < buffers ? this.#bufferBytes : segments[place - buffers]!.bytes, {
        interleave: nodes
      })
      this.#regions.set(place, region)
    }
    return region
  }

  /** The segments that hold rows of these matrices, in order. */
  #partsOf(names: readonly string[]): StreamedPart[] {
    return this.#sources.segments.flatMap(({ pieces, base }, segment) => {
      const own = pieces.flatMap((piece) => {
        const out = names.indexOf(piece.name)
        return out === -1 ? [] : [{ out, firstRow: piece.firstRow, rows: piece.rows, piece }]
      })
      if (own.length === 0) return []
      own.sort((a, b) => a.out - b.out)
      return [
        {
          segment,
          blocks: own,
          bind: (place) =>
            this.#bind(
              own.map(({ piece }) => ({ ...piece, at: base + piece.at })),
              place
            )
        }
      ]
    })
  }

  #bind(pieces: readonly TrunkPiece[], place: number): LinearGroup {
    const region = this.#region(place)
    return createLinearGroup(
      pieces.map(({ name, rows, at }) => {
        const cols = this.#sources.checkpoint.extent(name).shape[1]!
        return createLinear({ weights: { region, offset: at }, rows, cols }, this.#sources.native)
      })
    )
  }
}

const readOf = ({ file, offset, bytes }: Extent) => ({ file, offset, length: bytes })

class SegmentRead implements Loading {
  readonly #batch: Batch
  readonly #segment: TrunkSegment

  constructor(batch: Batch, segment: TrunkSegment) {
    this.#batch = batch
    this.#segment = segment
  }

  wait(): void {
    this.#segment.runs.forEach((run, i) => {
      waitFor(this.#batch, i, (position) => this.#tensorAt(run.at + (run.offset % PAGE_BYTES) + position))
    })
  }

  isOver(): boolean {
    return this.#segment.runs.every((_, i) => this.#batch.ended(i))
  }

  drop(): void {
    this.#batch.giveUp()
    for (let i = 0; i < this.#segment.runs.length; i++) settle(this.#batch, i)
  }

  /** The matrix that holds this byte of the segment, or the one before the gap it lies in. */
  #tensorAt(byte: number): string {
    return this.#segment.pieces.reduce((best, piece) =>
      piece.at <= byte && (best.at > byte || piece.at > best.at) ? piece : best
    ).name
  }
}
