import { statSync } from 'node:fs'
import type { openReader } from '@k3/uring'
import { type ExpertSource, type FileRange, ofFile, shuffled, WARM_UP } from './source.js'

/** What one row reads, and with which reader. */
export interface StorageRow {
  /** Stable: programs look rows up by it. */
  readonly name: RowName
  /** experts: as the engine does. The others are probes of the drive. */
  readonly reads: 'experts' | 'sequential' | 'random'
  readonly options: NonNullable<Parameters<typeof openReader>[1]>
  /** Parts of the whole, in eighths, that it is ahead of the first row: what was just read may be in a cache of the drive. */
  readonly lead: number
}

export type RowName =
  | 'buffered'
  | 'buffered-again'
  | 'io_uring-registered'
  | 'io_uring-plain'
  | 'pread'
  | 'raw-sequential'
  | 'raw-random'

const DIRECT = { direct: 'on' } as const
const BUFFERED = { direct: 'off', registers: false } as const
const RAW = { direct: 'auto', depth: 64 } as const

/** In the order of their turns: nothing takes a page into the page cache before `buffered` asks for it. */
export const STORAGE_ROWS: readonly StorageRow[] = [
  { name: 'buffered', reads: 'experts', options: BUFFERED, lead: 0 },
  { name: 'buffered-again', reads: 'experts', options: BUFFERED, lead: 0 },
  {
    name: 'io_uring-registered',
    reads: 'experts',
    options: { ...DIRECT, backend: 'io_uring' },
    lead: 1
  },
  {
    name: 'io_uring-plain',
    reads: 'experts',
    options: { ...DIRECT, backend: 'io_uring', registers: false },
    lead: 2
  },
  { name: 'pread', reads: 'experts', options: { ...DIRECT, backend: 'pread' }, lead: 3 },
  { name: 'raw-sequential', reads: 'sequential', options: RAW, lead: 4 },
  { name: 'raw-random', reads: 'random', options: RAW, lead: 5 }
]

/** How the engine would read, best first. */
export const ENGINE_ROWS: readonly RowName[] = ['io_uring-registered', 'io_uring-plain', 'pread', 'buffered']

const BLOCK_BYTES = 2 * 2 ** 20 // the largest request of a reader

/** What the rows read in each round; what the first round reads, which is not measured, no other one does. */
export class Readings {
  readonly rounds: number
  readonly #source: ExpertSource
  readonly #sizes: readonly number[]

  /** @throws ERR_BENCH_READ when a file is gone */
  constructor(source: ExpertSource) {
    this.rounds = source.batches.length
    this.#source = source
    this.#sizes = source.files.map((file) => ofFile(file, () => statSync(file)).size)
  }

  /** The submissions of one turn: the ranges of each. */
  of({ reads, lead }: StorageRow, round: number): (readonly FileRange[])[] {
    const others = this.rounds - WARM_UP
    const ahead = Math.floor((lead * others) / 8)
    const turn = round < WARM_UP ? round : WARM_UP + ((round - WARM_UP + ahead) % others)
    const batch = this.#source.batches[turn]!
    if (reads === 'experts') return [batch]
    return reads === 'sequential' ? [[this.#run(batch, turn)]] : this.#blocks(batch, turn)
  }

  /** As many bytes as the batch in one run. */
  #run(batch: readonly FileRange[], turn: number): FileRange {
    const { file, length, all, count } = this.#blocksOf(batch)
    const first = Math.floor(((all - count) * turn) / (this.rounds - 1))
    return { file, offset: first * BLOCK_BYTES, length: count * length }
  }

  /** As many bytes in blocks from all over the file, asked for one by one, for a batch would be sorted. */
  #blocks(batch: readonly FileRange[], turn: number): FileRange[][] {
    const { file, length, all, count } = this.#blocksOf(batch)
    const order = shuffled(Array.from({ length: all }, (_, i) => i * BLOCK_BYTES))
    return Array.from({ length: count }, (_, i) => [
      { file, offset: order[(turn * count + i) % all]!, length }
    ])
  }

  #blocksOf(batch: readonly FileRange[]) {
    const { file } = batch[0]!
    const size = this.#sizes[file]!
    const all = Math.max(1, Math.floor(size / BLOCK_BYTES))
    const bytes = batch.reduce((sum, { length }) => sum + length, 0)
    const count = Math.min(all, Math.ceil(bytes / BLOCK_BYTES))
    return { file, length: Math.min(BLOCK_BYTES, size), all, count }
  }
}
