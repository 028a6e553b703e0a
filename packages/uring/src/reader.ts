import { count } from '@k3/native-kit'
import { type BackendInfo, describeBackend } from './backend-info.js'
import { type Batch, NativeBatch } from './batch.js'
import { outOfRange, UringError } from './errors.js'
import { native } from './native.js'
import { checkReads, type Read, toNumbers } from './placement.js'
import { explain, type Refusal } from './refusal.js'
import { notOpened } from './region.js'

/**
 * `direct`: past the page cache ('auto': where the file system allows it). `backend`: 'auto' takes io_uring where it is
 * to be had. `depth`: requests of up to 2 MiB in flight, or threads, on each drive; 16 unless given. `registers`: whether
 * regions are registered with io_uring; true unless given.
 */
export interface ReaderOptions {
  readonly direct?: 'auto' | 'on' | 'off'
  readonly backend?: 'auto' | 'io_uring' | 'pread'
  readonly depth?: number
  readonly registers?: boolean
}

/**
 * A file by its path, or by those of its copies, one a drive: `paths[d]` lies on drive d, null when that has none. Whichever
 * drive is free reads the next block, so each delivers in proportion to its speed.
 */
export type FileCopies = string | readonly (string | null)[]

/** Reads ranges of its files into regions. */
export interface Reader {
  readonly backend: 'io_uring' | 'pread'
  /** How this reader reads right now, and why not better. */
  readonly info: BackendInfo
  /**
   * Starts all reads of a batch, in file order, behind those of earlier batches that are as urgent. No read of a less
   * urgent batch begins while one of a more urgent batch waits; 0, the default, is the most urgent. Each region stays
   * mapped until its reads are over.
   * @throws RangeError (ERR_OUT_OF_RANGE) naming a read that does not fit its region, or for another urgency;
   * ERR_URING_CLOSED
   */
  submit(reads: readonly Read[], urgency?: 0 | 1 | 2): Batch
  /** Resolves when every read is over and threads and files are gone. Any number of calls, the same promise. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const directNumber = { auto: 0, on: 1, off: 2 }
const backendNumber = { auto: 0, io_uring: 1, pread: 2 }
const maxDrives = 64 // a set of drives is a word
const maxDepth = 256 // as many threads; a disk is busy with a tenth of it
const leastUrgent = 2
const defaultDepth = 16 // as fast as more on the disks measured, and the first read of a batch is over sooner

class NativeReader implements Reader {
  readonly handle: object
  readonly files: readonly (readonly (string | null)[])[]
  #closed: Promise<void> | undefined

  constructor(handle: object, files: NativeReader['files']) {
    this.handle = handle
    this.files = files
  }

  get info(): BackendInfo {
    this.#refuseIfClosed()
    const paths = this.files.flat().filter((path) => path !== null)
    return describeBackend(paths, native().readerInfo(this.handle))
  }

  get backend(): BackendInfo['backend'] {
    return native().readerInfo(this.handle).ioUring ? 'io_uring' : 'pread'
  }

  submit(reads: readonly Read[], urgency: 0 | 1 | 2 = 0): Batch {
    this.#refuseIfClosed()
    count('urgency', urgency, 0)
    if (urgency > leastUrgent) throw outOfRange(`urgency must be 0, 1 or ${leastUrgent}, got ${urgency}`)
    checkReads(reads, this.files.length)
    const numbers = toNumbers(reads)
    const regions = reads.map((read) => read.region.handle)
    return new NativeBatch(this, native().submit(this.handle, numbers, regions, urgency), numbers)
  }

  close(): Promise<void> {
    this.#closed ??= new Promise<Reader>((resolve) => {
      // the callback holds this reader: collected while it closes, it would never call
      native().closeReader(this.handle, () => resolve(this))
    }).then(() => undefined)
    return this.#closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #refuseIfClosed(): void {
    if (this.#closed) throw new UringError('ERR_URING_CLOSED', 'the reader was closed; open another one')
  }
}

/**
 * Opens files for reading and proves, with real reads, what the system offers. The caller owns the reader and closes it.
 * @throws ERR_URING_OPEN, ERR_URING_NOT_A_FILE; ERR_URING_BACKEND or ERR_URING_DIRECT when what was asked for by name
 * is not to be had; ERR_URING_RESOURCES when the system refuses threads or descriptors; RangeError (ERR_OUT_OF_RANGE)
 */
export const openReader = (files: readonly FileCopies[], options: ReaderOptions = {}): Reader => {
  if (files.length === 0) throw outOfRange('a reader has at least one file')
  return open(files, options)
}

/**
 * How a reader of these files would read, and why not better. Without files: whether io_uring is to be had.
 * @throws what openReader throws for a file that cannot be opened
 */
export const backendInfo = (paths: readonly string[] = []): BackendInfo => {
  const reader = open(paths, { depth: 1 })
  const info = reader.info
  reader.close()
  return info
}

const open = (files: readonly FileCopies[], options: ReaderOptions): NativeReader => {
  const { direct, backend, depth, registers } = checked(options)
  const copies = files.map(copiesOf)
  const opened = native().openReader(copies, direct, backend, depth, registers)
  if ('handle' in opened) return new NativeReader(opened.handle, copies)
  throw opened.path === undefined ? notStarted(opened, backend) : notReadable(opened.path, opened)
}

const copiesOf = (file: FileCopies, index: number): readonly (string | null)[] => {
  if (typeof file === 'string') return [file]
  if (file.length <= maxDrives && file.some((path) => path !== null)) return [...file]
  throw outOfRange(`file ${index} must have a copy on one of at most ${maxDrives} drives`)
}

const checked = ({
  direct = 'auto',
  backend = 'auto',
  depth = defaultDepth,
  registers = true
}: ReaderOptions) => {
  if (!Object.hasOwn(directNumber, direct)) throw outOfRange(`direct must be auto, on or off, got ${direct}`)
  if (!Object.hasOwn(backendNumber, backend))
    throw outOfRange(`backend must be auto, io_uring or pread, got ${backend}`)
  count('depth', depth, 1)
  if (depth > maxDepth) throw outOfRange(`depth must be at most ${maxDepth}, got ${depth}`)
  if (typeof registers !== 'boolean') throw outOfRange(`registers must be true or false, got ${registers}`)
  return {
    direct: directNumber[direct],
    backend: backendNumber[backend],
    depth,
    registers
  }
}

const notReadable = (file: string, refusal: Refusal) =>
  refusal.stage === 'O_DIRECT'
    ? new UringError('ERR_URING_DIRECT', `${file}: direct reads refused: ${explain(refusal)}`, { file })
    : notOpened(file, refusal)

const notStarted = (refusal: Refusal, backend: number) => {
  const ours = ['pthread_create', 'eventfd', 'uv_poll_init'].includes(refusal.stage)
  return backend === backendNumber.io_uring && !ours
    ? new UringError('ERR_URING_BACKEND', `io_uring is not to be had: ${explain(refusal)}`)
    : new UringError('ERR_URING_RESOURCES', `the reader cannot start: ${explain(refusal)}`)
}
