import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { tensorBytes } from '@k3/engine/checkpoint'
import { createFiller, type Filler, type Geometry, geometryOf } from '@k3/synth'
import { prepareDestination } from './destination.js'
import { SynthWriteError } from './errors.js'
import { type CheckpointLayout, layOut, type ShardLayout } from './layout.js'

/** How {@link writeCheckpoint} goes about it; `single` and `shard` are for tests of other readers. */
export interface WriteOptions {
  /** all tensors in one shard */
  readonly single?: boolean
  /** 1-based: write this shard only, with the index and configuration of all */
  readonly shard?: number
  /** write the headers of the shards without data; at the released geometry those of the vision shards too */
  readonly headersOnly?: boolean
  /** made by @k3/task-pool */
  readonly pool?: { readonly handle: object }
  readonly signal?: AbortSignal
  /** told after each piece: bytes written so far, and in all */
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void
}

/** What was written; byte counts are those of the complete files, also when only headers were asked for. */
export interface WrittenCheckpoint {
  readonly shards: number
  readonly tensors: number
  readonly tensorBytes: number
  readonly fileBytes: number
}

const PIECE_BYTES = 16 << 20

/**
 * Writes a synthetic checkpoint. Every file is written under a temporary name and renamed, so that a run that is
 * stopped leaves no half file under a final name; config.json comes last. Nothing is forced to the disk: what a power
 * failure takes can be made again.
 * @param seed 0 to 2^64 - 1
 * @throws ERR_SYNTH_OCCUPIED, ERR_SYNTH_SPACE, ERR_SYNTH_SHARD, ERR_SYNTH_WRITE, and the signal's reason
 */
export async function writeCheckpoint(
  geometry: Geometry,
  seed: bigint,
  dir: string,
  options: WriteOptions = {}
): Promise<WrittenCheckpoint> {
  const { single = false, shard, headersOnly = false, pool, signal, onProgress } = options
  const layout = layOut(geometry, { single, vision: headersOnly && isReleased(geometry) })
  const shards = chosen(layout, shard, dir)
  const contents = shards.map((each) => ({
    name: each.name,
    bytes: each.header.byteLength + (headersOnly ? 0 : each.dataBytes)
  }))
  const texts = [
    { name: 'model.safetensors.index.json', text: layout.index },
    { name: 'config.json', text: layout.config }
  ]
  const planned = [...contents, ...texts.map(({ name, text }) => ({ name, bytes: Buffer.byteLength(text) }))]
  await prepareDestination(dir, planned, layout.config)

  const progress = new Progress(planned, onProgress)
  const filler = createFiller(geometry, seed, pool === undefined ? {} : { pool })
  const buffers = [new Uint8Array(PIECE_BYTES), new Uint8Array(PIECE_BYTES)] as const
  for (const each of shards) {
    const pieces = headersOnly ? [each.header] : shardPieces(each, filler, buffers)
    await writeWhole(path.join(dir, each.name), pieces, progress, signal)
  }
  for (const { name, text } of texts) {
    await writeWhole(path.join(dir, name), [Buffer.from(text)], progress, signal)
  }
  return summary(layout)
}

/** The formula has no values for vision tensors, and their sizes belong to the released model alone. */
const isReleased = (geometry: Geometry): boolean =>
  JSON.stringify(geometry) === JSON.stringify(geometryOf('full'))

function chosen(layout: CheckpointLayout, shard: number | undefined, dir: string): readonly ShardLayout[] {
  if (shard === undefined) return layout.shards
  const only = layout.shards[shard - 1]
  if (only !== undefined) return [only]
  const message = `there is no shard ${shard}, only 1 to ${layout.shards.length}`
  throw new SynthWriteError('ERR_SYNTH_SHARD', dir, message)
}

function summary({ shards, tensorBytes: bytes }: CheckpointLayout): WrittenCheckpoint {
  return {
    shards: shards.length,
    tensors: shards.reduce((sum, { records }) => sum + records.length, 0),
    tensorBytes: bytes,
    fileBytes: bytes + shards.reduce((sum, { header }) => sum + header.byteLength, 0)
  }
}

class Progress {
  readonly #total: number
  #done = 0

  constructor(
    files: readonly { readonly bytes: number }[],
    private readonly report: ((doneBytes: number, totalBytes: number) => void) | undefined
  ) {
    this.#total = files.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  add(bytes: number): void {
    this.#done += bytes
    this.report?.(this.#done, this.#total)
  }
}

/** A shard's bytes in pieces: two buffers in turn, so that one is filled while the other is on its way to the disk. */
function* shardPieces(
  { header, records }: ShardLayout,
  filler: Filler,
  buffers: readonly [Uint8Array, Uint8Array]
): Generator<Uint8Array> {
  yield header
  let turn: 0 | 1 = 0
  let used = 0
  for (const record of records) {
    const bytes = tensorBytes(record)
    for (let at = 0; at < bytes; ) {
      // pieces of a tensor start at whole words
      const room = (PIECE_BYTES - used) & ~3
      if (room === 0) {
        yield buffers[turn].subarray(0, used)
        turn = turn === 0 ? 1 : 0
        used = 0
        continue
      }
      const count = Math.min(bytes - at, room)
      filler.fill(record, at, buffers[turn].subarray(used, used + count))
      at += count
      used += count
    }
  }
  if (used > 0) yield buffers[turn].subarray(0, used)
}

/** Writes a file whole or not at all. At most one piece is on its way to the disk while the next one is made. */
async function writeWhole(
  file: string,
  pieces: Iterable<Uint8Array>,
  progress: Progress,
  signal: AbortSignal | undefined
): Promise<void> {
  const temporary = path.join(path.dirname(file), `.${path.basename(file)}.part`)
  try {
    const handle = await open(temporary, 'w')
    try {
      await writePieces(handle, pieces, progress, signal)
    } finally {
      await handle.close()
    }
    await rename(temporary, file)
  } catch (cause) {
    await rm(temporary, { force: true })
    if (signal?.aborted) throw signal.reason
    if (!isSystemError(cause)) throw cause
    throw new SynthWriteError('ERR_SYNTH_WRITE', file, `cannot write ${file}: ${cause.message}`, cause)
  }
}

async function writePieces(
  handle: FileHandle,
  pieces: Iterable<Uint8Array>,
  progress: Progress,
  signal: AbortSignal | undefined
): Promise<void> {
  const iterator = pieces[Symbol.iterator]()
  let next = iterator.next()
  while (!next.done) {
    signal?.throwIfAborted()
    const writing = writeAll(handle, next.value)
    try {
      next = iterator.next()
    } finally {
      progress.add(await writing)
    }
    // lets a signal in: making a piece blocks this thread
    await setImmediate()
  }
}

/** One native write per piece where possible: FileHandle.writeFile comes back to this thread every 512 KiB. */
async function writeAll(handle: FileHandle, piece: Uint8Array): Promise<number> {
  let done = 0
  while (done < piece.byteLength) {
    const { bytesWritten } = await handle.write(piece, done, piece.byteLength - done)
    done += bytesWritten
  }
  return done
}

const isSystemError = (cause: unknown): cause is Error => cause instanceof Error && 'syscall' in cause
