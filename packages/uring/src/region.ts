import { constants as limits } from 'node:buffer'
import { constants } from 'node:os'
import { count } from '@k3/native-kit'
import { outOfRange, UringError } from './errors.js'
import { native } from './native.js'
import { errorName, type Refusal } from './refusal.js'

const PAGE_BYTES = 4096

/** Native memory, by handle: ops and reads take `handle` and an offset. */
export interface Region {
  readonly bytes: number
  /**
   * A type-tagged External with the C struct `K3Region`.
   * @throws ERR_URING_REGION_CLOSED after close()
   */
  readonly handle: object
  /**
   * The bytes [offset, offset + length) without a copy; the view keeps them mapped, also after close(). A write through
   * a view of a mapped file changes this process's copy of the page, never the file.
   * @throws RangeError (ERR_OUT_OF_RANGE) outside the region, ERR_URING_VIEW above the largest typed array (4 GiB on
   * Node 20), ERR_URING_REGION_CLOSED
   */
  view(offset: number, length: number): Uint8Array
  /**
   * Checks that the mapped file still has the size and modification time it was mapped with; memory always passes. A
   * page that a truncation took away cannot be read: the system ends the process (SIGBUS). So look before a long run.
   * @throws ERR_URING_CHANGED, ERR_URING_REGION_CLOSED
   */
  verify(): void
  /**
   * Gives the pages of [offset, offset + length) back to the system; they can be used again, and read as zero, or in a
   * mapped file as the file does: what was written through a view is gone. Both are multiples of 4096. Not while a read is
   * on its way into one of the 64 MiB chunks they lie in: those are what io_uring has registered and now has to let go.
   * @throws RangeError (ERR_OUT_OF_RANGE) outside the region or off a page, ERR_URING_REGION_BUSY while a read is on its
   * way there, ERR_URING_MEMORY, ERR_URING_REGION_CLOSED
   */
  discard(offset: number, length: number): void
  /** Gives the memory back once no op, view or read uses it any more. A second call does nothing. */
  close(): void
  [Symbol.dispose](): void
}

class NativeRegion implements Region {
  readonly bytes: number
  readonly #name: string
  #handle: object | undefined

  constructor(handle: object, bytes: number, name: string) {
    this.#handle = handle
    this.bytes = bytes
    this.#name = name
  }

  get handle(): object {
    if (this.#handle) return this.#handle
    throw new UringError('ERR_URING_REGION_CLOSED', `${this.#name} was closed; use it before close()`)
  }

  view(offset: number, length: number): Uint8Array {
    count('offset', offset, 0)
    count('length', length, 0)
    if (offset + length > this.bytes) {
      throw outOfRange(
        `bytes ${offset} to ${offset + length} are not inside ${this.#name} of ${this.bytes} bytes`
      )
    }
    if (length > limits.MAX_LENGTH) {
      const message = `a view of ${length} bytes: the largest typed array here has ${limits.MAX_LENGTH}; take several`
      throw new UringError('ERR_URING_VIEW', message, { offset, needBytes: length })
    }
    const buffer = native().view(this.handle, offset, length)
    if (typeof buffer !== 'number') return new Uint8Array(buffer)
    throw new UringError('ERR_URING_VIEW', `mprotect: ${errorName(buffer)} for a view of ${this.#name}`)
  }

  verify(): void {
    const verdict = native().verifyRegion(this.handle)
    if (verdict === 0) return
    const found = verdict < 0 ? 'its size or modification time is another' : `fstat: ${errorName(verdict)}`
    throw new UringError('ERR_URING_CHANGED', `${this.#name} changed since it was mapped: ${found}`, {
      file: this.#name
    })
  }

  discard(offset: number, length: number): void {
    count('offset', offset, 0)
    count('length', length, PAGE_BYTES)
    if (offset % PAGE_BYTES !== 0 || length % PAGE_BYTES !== 0 || offset + length > this.bytes) {
      const message = `bytes ${offset} to ${offset + length} are no whole pages inside ${this.#name} of ${this.bytes} bytes`
      throw outOfRange(message)
    }
    const error = native().discardRegion(this.handle, offset, length)
    if (error === 0) return
    if (error === constants.errno.EBUSY) {
      const message = `a read is on its way into bytes ${offset} to ${offset + length} of ${this.#name}, or close by; wait for it`
      throw new UringError('ERR_URING_REGION_BUSY', message, { offset, needBytes: length })
    }
    throw new UringError('ERR_URING_MEMORY', `madvise: ${errorName(error)} for pages of ${this.#name}`)
  }

  close(): void {
    if (this.#handle) native().closeRegion(this.#handle)
    this.#handle = undefined
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

/**
 * `bytes` zero bytes that start on a page, and on a huge page from 2 MiB up (huge pages are asked for). The caller owns
 * the region. Pages are claimed from the system as they are first touched, near the thread that does, or with `interleave`
 * from these NUMA nodes in turn.
 * @throws RangeError (ERR_OUT_OF_RANGE) for fewer than 1 byte or a node that is not in 0 … 51, ERR_URING_MEMORY when the
 * system refuses, also the nodes
 */
export const allocRegion = (
  bytes: number,
  { interleave = [] }: { readonly interleave?: readonly number[] } = {}
): Region => {
  count('bytes', bytes, 1)
  const region = native().allocRegion(bytes, maskOf(interleave))
  if ('handle' in region) return new NativeRegion(region.handle, region.bytes, 'the region')
  const message = `no region of ${bytes} bytes: ${region.stage}: ${errorName(region.error)}`
  throw new UringError('ERR_URING_MEMORY', message, { needBytes: bytes })
}

const MOST_NODES = 52 // bits of a number that are exact

const maskOf = (nodes: readonly number[]): number =>
  [...new Set(nodes)].reduce((mask, node) => {
    count('interleave', node, 0)
    if (node >= MOST_NODES) throw outOfRange(`interleave takes nodes below ${MOST_NODES}, got ${node}`)
    return mask + 2 ** node
  }, 0)

/**
 * Maps a whole file, of any size, read-only. The caller owns the region. The file must not be truncated while it is
 * mapped: see `verify`.
 * @throws ERR_URING_OPEN, ERR_URING_NOT_A_FILE (also for an empty file), ERR_URING_MEMORY
 */
export const mapReadOnly = (path: string): Region => {
  const region = native().mapFile(path)
  if ('handle' in region) return new NativeRegion(region.handle, region.bytes, path)
  throw notOpened(path, region)
}

// nothing is wrong with a file when these are why it is not open
const EXHAUSTED = ['EMFILE', 'ENFILE', 'ENOMEM']

/** The error for a file that could not be opened or mapped. */
export const notOpened = (file: string, refusal: Refusal): UringError => {
  const name = errorName(refusal.error)
  if (refusal.stage === 'open' && EXHAUSTED.includes(name))
    return new UringError('ERR_URING_RESOURCES', `${file} cannot be opened: ${name}`, { file })
  if (refusal.stage === 'open')
    return new UringError('ERR_URING_OPEN', `${file} cannot be opened: ${name}`, { file })
  if (refusal.stage === 'fstat')
    return new UringError('ERR_URING_NOT_A_FILE', `${file} is not a regular file: ${name}`, { file })
  if (name === 'EINVAL')
    return new UringError('ERR_URING_NOT_A_FILE', `${file} has no bytes to map: it is empty`, { file })
  return new UringError('ERR_URING_MEMORY', `${file} cannot be mapped: ${refusal.stage}: ${name}`, { file })
}
