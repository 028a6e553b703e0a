import { randomUUID } from 'node:crypto'
import { closeSync, constants, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { allocRegion } from '@k3/uring'
import { UsageError } from '../../usage-error.js'
import { BenchError } from '../errors.js'
import { gigabytes } from '../operands.js'
import { Pattern } from './pattern.js'

const PIECE_BYTES = 16 * 2 ** 20
const PAGE_BYTES = 4096

/** What stops a long run, and who is told how far it is. */
export interface RunControl {
  readonly signal: AbortSignal
  readonly progress: (line: string) => void
}

/** A file of known bytes that goes away with this object, and with a process that ends, SIGKILL and SIGQUIT apart. */
export class Fixture implements Disposable {
  readonly file: string
  readonly pattern = new Pattern()
  /** Whether it was written past the page cache, so that none of its pages are there. */
  isDirect = false
  readonly #descriptor: number
  readonly #remove = (): void => rmSync(this.file, { force: true })

  private constructor(dir: string) {
    this.file = path.join(dir, `k3-bench-storage-${randomUUID()}.tmp`)
    this.#descriptor = openSync(this.file, 'wx')
    process.on('exit', this.#remove)
  }

  /**
   * Writes one of at least `bytes` bytes, whole pages of them; nothing is left when that does not work out.
   * @throws ERR_USAGE when `dir` is no folder, ERR_BENCH_SPACE before anything is written, ERR_BENCH_WRITE, and the
   * reason of the signal
   */
  static async write(dir: string, bytes: number, control: RunControl): Promise<Fixture> {
    refuseNoFolder(dir)
    refuseShortSpace(dir, bytes)
    try {
      const fixture = new Fixture(dir)
      try {
        await fixture.#fill(PAGE_BYTES * Math.ceil(bytes / PAGE_BYTES), control)
      } catch (error) {
        fixture[Symbol.dispose]()
        throw error
      }
      return fixture
    } catch (cause) {
      if (!(cause instanceof Error && 'syscall' in cause)) throw cause
      const message = `the fixture of ${gigabytes(bytes)} cannot be written to ${dir}: ${cause.message}`
      throw new BenchError('ERR_BENCH_WRITE', message, { cause })
    }
  }

  async #fill(bytes: number, { signal, progress }: RunControl): Promise<void> {
    using buffer = allocRegion(Math.min(PIECE_BYTES, bytes)) // aligned, as direct writes want it
    const direct = openDirect(this.file)
    try {
      for (let at = 0; at < bytes; at += PIECE_BYTES) {
        signal.throwIfAborted()
        const piece = buffer.view(0, Math.min(PIECE_BYTES, bytes - at))
        this.pattern.fill(piece, at)
        if (at === 0) this.isDirect = direct !== null && takesDirect(direct, piece)
        writeAll(this.isDirect ? direct! : this.#descriptor, piece, at)
        progress(`writing ${gigabytes(at)} of ${gigabytes(bytes)}`)
        await setImmediate() // lets a signal in
      }
      fsyncSync(this.#descriptor)
    } finally {
      if (direct !== null) closeSync(direct)
    }
  }

  [Symbol.dispose](): void {
    process.off('exit', this.#remove)
    closeSync(this.#descriptor)
    this.#remove()
  }
}

const refuseNoFolder = (dir: string): void => {
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new UsageError(`--dir ${dir} is no folder`)
}

const refuseShortSpace = (dir: string, bytes: number): void => {
  const { bavail, bsize, blocks } = statfsSync(dir)
  // without any blocks a file system does not tell
  if (blocks === 0 || bytes <= bavail * bsize) return
  const message = `${dir} has ${gigabytes(bavail * bsize)} free, the fixture takes ${gigabytes(bytes)}: free some, or another --dir or --gb`
  throw new BenchError('ERR_BENCH_SPACE', message)
}

const isRefusal = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EINVAL'

/** A descriptor that writes past the page cache; null where there is no such thing. */
const openDirect = (file: string): number | null => {
  if (constants.O_DIRECT === undefined) return null
  try {
    return openSync(file, constants.O_WRONLY | constants.O_DIRECT)
  } catch (error) {
    if (isRefusal(error)) return null
    throw error
  }
}

/** File systems may take the flag and still refuse the write. */
const takesDirect = (descriptor: number, piece: Uint8Array): boolean => {
  try {
    writeAll(descriptor, piece.subarray(0, PAGE_BYTES), 0)
    return true
  } catch (error) {
    if (isRefusal(error)) return false
    throw error
  }
}

const writeAll = (descriptor: number, piece: Uint8Array, position: number): void => {
  for (let done = 0; done < piece.length; )
    done += writeSync(descriptor, piece, done, piece.length - done, position + done)
}
