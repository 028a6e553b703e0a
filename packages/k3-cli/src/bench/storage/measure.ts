import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { allocRegion, openReader, paddedBytes, type Reader, type Region, UringError } from '@k3/uring'
import type { RunControl } from './fixture.js'
import { Readings, STORAGE_ROWS, type StorageRow } from './rows.js'
import { type ExpertSource, type FileRange, WARM_UP } from './source.js'

const POISON = 0xa5
const PAGE_BYTES = 4096

/** One turn of a row. */
export interface Turn {
  readonly bytes: number
  readonly seconds: number
  /** Until the first range in file order was there. */
  readonly firstSeconds: number
  /** Of all threads of this process. */
  readonly cpuSeconds: number
  /** Bytes the kernel counted as read from storage; null where it does not count. */
  readonly storageBytes: number | null
}

/** Why a row cannot be had here. */
export interface RowRefusal {
  readonly code: string
  readonly message: string
}

/** What became of a row. */
export interface RowResult {
  readonly row: StorageRow
  readonly turns: readonly Turn[]
  /** How it was read; null for a refused row. */
  readonly reader: {
    readonly backend: Reader['backend']
    readonly direct: boolean
    readonly registeredBytes: number
  } | null
  readonly refused: RowRefusal | null
}

/**
 * Reads all batches of the source through every row, the rows taking turns, so that a slow moment hits them alike. Every
 * byte is held against the source outside the timed part, over memory that was poisoned before.
 * @throws ERR_BENCH_CORRUPT, ERR_BENCH_READ, what a reader throws, and the reason of the signal
 */
export const measureStorage = async (source: ExpertSource, control: RunControl): Promise<RowResult[]> => {
  const readings = new Readings(source)
  using region = allocRegion(regionBytes(readings))
  await using readers = new Readers(source.files)
  // one view: many would have the garbage collector run inside the timed part
  const memory = region.view(0, region.bytes)
  const open = STORAGE_ROWS.map((row) => new OpenRow(row, readers, region, memory))
  for (let round = 0; round < readings.rounds; round++) {
    for (const each of open) {
      control.signal.throwIfAborted()
      control.progress(`round ${round + 1} of ${readings.rounds}: ${each.row.name}`)
      await each.take(readings.of(each.row, round), source, round < WARM_UP)
      await setImmediate() // lets a signal in
    }
  }
  await source.finish(control)
  return open.map((each) => each.result())
}

const regionBytes = (readings: Readings): number => {
  const rounds = Array.from({ length: readings.rounds }, (_, round) => round)
  const needs = STORAGE_ROWS.flatMap((row) =>
    rounds.map((round) => spanBytes(readings.of(row, round).flat()))
  )
  return Math.max(...needs)
}

const spanBytes = (ranges: readonly FileRange[]): number =>
  ranges.reduce((sum, { offset, length }) => sum + paddedBytes(offset, length), 0)

/** One reader for each set of options: registered memory counts once for each reader that uses it. */
class Readers implements AsyncDisposable {
  readonly #files: readonly string[]
  readonly #open = new Map<StorageRow['options'], Reader>()

  constructor(files: readonly string[]) {
    this.#files = files
  }

  with(options: StorageRow['options']): Reader {
    const known = this.#open.get(options)
    if (known !== undefined) return known
    const reader = openReader(this.#files, options)
    this.#open.set(options, reader)
    return reader
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const reader of this.#open.values()) await reader.close()
  }
}

class OpenRow {
  readonly row: StorageRow
  readonly #region: Region
  readonly #memory: Uint8Array
  readonly #turns: Turn[] = []
  readonly #reader: Reader | null = null
  #refused: RowRefusal | null = null

  constructor(row: StorageRow, readers: Readers, region: Region, memory: Uint8Array) {
    this.row = row
    this.#region = region
    this.#memory = memory
    try {
      this.#reader = readers.with(row.options)
    } catch (error) {
      if (!(error instanceof UringError) || !/^ERR_URING_(BACKEND|DIRECT)$/.test(error.code)) throw error
      this.#refused = { code: error.code, message: error.message }
    }
  }

  /** Reads the ranges of each submission and holds what came against the source. */
  async take(
    submissions: readonly (readonly FileRange[])[],
    source: ExpertSource,
    isWarmUp: boolean
  ): Promise<void> {
    if (this.#refused !== null) return
    this.#memory.fill(POISON)
    let at = 0
    const placed = submissions.map((ranges) =>
      ranges.map((range) => {
        const read = { ...range, region: this.#region, at }
        at += paddedBytes(range.offset, range.length)
        return read
      })
    )
    const turn = await timed(this.#reader!, placed)
    for (const { file, offset, length, at } of placed.flat()) {
      const start = at + (offset % PAGE_BYTES)
      const bytes = this.#memory.subarray(start, start + length)
      source.check(this.row.name, bytes, { file, offset, length })
    }
    if (isWarmUp) this.#refuseUnregistered()
    else this.#turns.push(turn)
  }

  result(): RowResult {
    const refused = this.#refused
    const info = this.#reader?.info
    if (refused !== null || info === undefined) return { row: this.row, turns: [], reader: null, refused }
    const { backend, files, registeredBytes } = info
    const direct = files.every((file) => file.direct)
    return { row: this.row, turns: this.#turns, reader: { backend, direct, registeredBytes }, refused: null }
  }

  #refuseUnregistered(): void {
    const message = this.row.name === 'io_uring-registered' ? this.#reader!.info.registrationRefusal : null
    if (message !== null) this.#refused = { code: 'ERR_BENCH_UNREGISTERED', message }
  }
}

type PlacedRead = Parameters<Reader['submit']>[0][number]

/** As the engine does it: each submission as urgent as can be. Waiting in the event loop lets a signal in. */
const timed = async (reader: Reader, submissions: readonly (readonly PlacedRead[])[]): Promise<Turn> => {
  const storage = storageBytesRead()
  const cpu = process.cpuUsage()
  const start = performance.now()
  const batches = submissions.map((reads) => reader.submit(reads))
  await Promise.all(batches.map(({ done }) => done))
  const { user, system } = process.cpuUsage(cpu)
  const after = storageBytesRead()
  const ends = batches.flatMap((batch, i) => submissions[i]!.map((_, read) => batch.endedAt(read)))
  return {
    bytes: submissions.flat().reduce((sum, { length }) => sum + length, 0),
    seconds: (Math.max(...ends) - start) / 1e3,
    firstSeconds: (ends[0]! - start) / 1e3,
    cpuSeconds: (user + system) / 1e6,
    storageBytes: storage === null || after === null ? null : after - storage
  }
}

/** What this process has caused to be read from storage so far, as Linux counts it. */
const storageBytesRead = (): number | null => {
  try {
    const [, bytes] = /^read_bytes: (\d+)$/m.exec(readFileSync('/proc/self/io', 'latin1')) ?? []
    return bytes === undefined ? null : Number(bytes)
  } catch {
    return null
  }
}
