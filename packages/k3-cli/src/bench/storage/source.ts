import { closeSync, openSync, readSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import type { Checkpoint } from '@k3/engine/checkpoint'
import { UsageError } from '../../usage-error.js'
import { BenchError } from '../errors.js'
import type { Fixture, RunControl } from './fixture.js'

/** Bytes of a file; `file` is an index into the files of the source. */
export interface FileRange {
  readonly file: number
  readonly offset: number
  readonly length: number
}

/** Experts on a drive, and what their bytes are. */
export interface ExpertSource {
  readonly files: readonly string[]
  /** Experts that are read together, in file order. No expert is in two batches. */
  readonly batches: readonly (readonly FileRange[])[]
  /** Holds every byte that `row` read against what the file has there, now or in `finish`. @throws ERR_BENCH_CORRUPT */
  check(row: string, bytes: Uint8Array, range: FileRange): void
  /** Ends the comparison. @throws ERR_BENCH_CORRUPT, ERR_BENCH_READ, and the reason of the signal */
  finish(control: RunControl): Promise<void>
}

/** The experts of a token: how many, and the bytes of one. */
export interface BatchShape {
  readonly experts: number
  readonly expertBytes: number
}

// Of most shards of the released model: where their experts begin, modulo a page.
const FIRST_OFFSET = 304

/** Rounds before the measured ones. */
export const WARM_UP = 1
const FEWEST_ROUNDS = 3
const FEWEST_BATCHES = WARM_UP + FEWEST_ROUNDS

/** How many batches `bytes` bytes make. @throws ERR_USAGE for fewer than are needed to measure anything */
export const batchesIn = (bytes: number, { experts, expertBytes }: BatchShape): number => {
  const count = Math.floor(bytes / (experts * expertBytes))
  if (count >= FEWEST_BATCHES) return count
  const least = (FEWEST_BATCHES * experts * expertBytes) / 1e9
  const needed = Math.ceil(1000 * least) / 1000
  throw new UsageError(
    `--gb is ${bytes / 1e9}, ${FEWEST_BATCHES} batches of ${experts} experts take ${needed}`
  )
}

/** Bytes of a fixture with so many batches. */
export const fixtureBytes = (batches: number, { experts, expertBytes }: BatchShape): number =>
  FIRST_OFFSET + batches * experts * expertBytes

/** Batches of experts all over a fixture of `fixtureBytes` bytes. */
export const fixtureSource = (
  { file, pattern }: Pick<Fixture, 'file' | 'pattern'>,
  batches: number,
  { experts, expertBytes }: BatchShape
): ExpertSource => {
  const ranges = Array.from({ length: batches * experts }, (_, i) => ({
    file: 0,
    offset: FIRST_OFFSET + i * expertBytes,
    length: expertBytes
  }))
  return {
    files: [file],
    batches: inBatches(ranges, experts),
    check: (row, bytes, { offset }) => {
      const at = pattern.firstDifference(bytes, offset)
      if (at >= 0) throw corrupt(row, `byte ${offset + at} of ${file} is ${bytes[at]}, another was written`)
    },
    finish: () => Promise.resolve()
  }
}

const corrupt = (row: string, what: string): BenchError =>
  new BenchError('ERR_BENCH_CORRUPT', `${row} read something else than is there: ${what}`)

/** What rows read in one place, as checksums. */
interface Seen {
  readonly range: FileRange
  readonly sums: [row: string, sum: number][]
}

/** Batches of the experts of random layers of a checkpoint, at most `bytes` bytes of them. */
export class ModelSource implements ExpertSource {
  readonly files: readonly string[]
  readonly batches: readonly (readonly FileRange[])[]
  readonly shape: BatchShape
  /** What each row read, by place. The file itself is read last: that takes its pages into the page cache. */
  readonly #seen = new Map<string, Seen>()

  /** @throws ERR_USAGE when `bytes`, or the experts of the model, are fewer than are needed to measure anything */
  constructor(checkpoint: Checkpoint, bytes: number) {
    const { topK, expertCount } = checkpoint.config.moe
    const moeLayers = checkpoint.plan.filter(({ ffn }) => ffn === 'moe')
    const areas = moeLayers.map(({ index }) => checkpoint.experts(index))
    const batches = areas.flatMap((area) => {
      const rangeOf = (expert: number): FileRange => ({
        file: area.file,
        offset: area.base(expert),
        length: area.bytes
      })
      return inBatches(
        Array.from({ length: expertCount }, (_, expert) => rangeOf(expert)),
        topK
      )
    })
    if (batches.length < FEWEST_BATCHES)
      throw new UsageError(
        `the model has experts for ${batches.length} batches, ${FEWEST_BATCHES} are needed`
      )
    this.shape = { experts: topK, expertBytes: Math.max(...areas.map((area) => area.bytes)) }
    this.files = checkpoint.files
    this.batches = shuffled(batches).slice(0, batchesIn(bytes, this.shape))
  }

  check(row: string, bytes: Uint8Array, range: FileRange): void {
    const place = Object.values(range).join()
    const seen = this.#seen.get(place) ?? { range, sums: [] }
    seen.sums.push([row, crc32(bytes)])
    this.#seen.set(place, seen)
  }

  async finish({ signal, progress }: RunControl): Promise<void> {
    for (const [i, { range, sums }] of [...this.#seen.values()].entries()) {
      signal.throwIfAborted()
      progress(`comparing ${i + 1} of ${this.#seen.size}`)
      const { file, offset, length } = range
      const path = this.files[file]!
      const there = crc32(ofFile(path, () => readPlain(path, range)))
      const other = sums.find(([, sum]) => sum !== there)
      if (other !== undefined)
        throw corrupt(other[0], `bytes ${offset} to ${offset + length} of ${path} differ from a plain read`)
      await setImmediate() // lets a signal in
    }
  }
}

/** What `read` makes of a file that was there when the run began. @throws ERR_BENCH_READ */
export const ofFile = <T>(path: string, read: () => T): T => {
  try {
    return read()
  } catch (cause) {
    const message = `${path} cannot be read any more: ${(cause as Error).message}`
    throw new BenchError('ERR_BENCH_READ', message, { cause })
  }
}

const readPlain = (path: string, { offset, length }: FileRange): Buffer => {
  const bytes = Buffer.alloc(length)
  const descriptor = openSync(path, 'r')
  try {
    for (let done = 0, got = 1; done < length && got > 0; done += got)
      got = readSync(descriptor, bytes, done, length - done, offset + done)
  } finally {
    closeSync(descriptor)
  }
  return bytes
}

/** Whole batches of ranges that lie apart, each in file order. */
const inBatches = (ranges: readonly FileRange[], size: number): FileRange[][] => {
  const random = shuffled(ranges)
  return Array.from({ length: Math.floor(ranges.length / size) }, (_, i) =>
    random.slice(i * size, (i + 1) * size).sort((a, b) => a.offset - b.offset)
  )
}

/** The same in an order that a seeded generator draws. */
export const shuffled = <T>(items: readonly T[]): T[] => {
  const order = [...items]
  for (let i = order.length - 1, state = 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    const j = Math.floor((state / 2 ** 32) * (i + 1))
    ;[order[i], order[j]] = [order[j]!, order[i]!]
  }
  return order
}
