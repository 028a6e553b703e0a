import { constants } from 'node:os'
import { outOfRange, UringError } from './errors.js'
import { native } from './native.js'
import { type ReadNumbers, readNumbers } from './placement.js'
import { errorName } from './refusal.js'

/** The reads of one submit(). They progress whether or not anybody waits. */
export interface Batch {
  /**
   * Blocks this thread until read `index` is over. Any order, any number of times.
   * @throws ERR_URING_EOF, ERR_URING_READ, ERR_URING_GIVEN_UP of that read, by the fault that lies lowest in the file when
   * it met several; RangeError for an index outside the batch
   */
  wait(index: number): void
  /** Whether read `index` is over, well or not, without waiting. @throws RangeError for an index outside the batch */
  ended(index: number): boolean
  /** When read `index` ended, in milliseconds of `performance.now()`; waits for it. @throws RangeError as `wait` */
  endedAt(index: number): number
  /** What of the batch no drive has begun becomes as urgent as can be: somebody needs it now. What is so keeps its turn. */
  hurry(): void
  /** What of the batch no drive has begun is not read; such a read is over with ERR_URING_GIVEN_UP. */
  giveUp(): void
  /** Settles, through the event loop, once every read is over; rejects with the error of the first one that failed. */
  readonly done: Promise<void>
}

/** What a batch needs of its reader. */
export interface BatchSource {
  readonly handle: object
  readonly files: readonly (readonly (string | null)[])[]
}

const endOfFile = -1
const cancelled = constants.errno.ECANCELED
// The native clock is process.hrtime's; performance.now() is the same one from another origin.
const clockOrigin = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** A batch by its native handle; keeps the numbers of its reads to explain a failure. */
export class NativeBatch implements Batch {
  readonly #source: BatchSource
  readonly #handle: object
  readonly #reads: ReadNumbers
  #done: Promise<void> | undefined

  constructor(source: BatchSource, handle: object, reads: ReadNumbers) {
    this.#source = source
    this.#handle = handle
    this.#reads = reads
  }

  wait(index: number): void {
    this.#checkIndex(index)
    const failure = native().wait(this.#handle, index)
    if (failure) throw this.#explain(index, failure)
  }

  ended(index: number): boolean {
    this.#checkIndex(index)
    return native().ended(this.#handle, index)
  }

  endedAt(index: number): number {
    this.#checkIndex(index)
    return native().endedAt(this.#handle, index) - clockOrigin
  }

  hurry(): void {
    native().hurry(this.#source.handle, this.#handle)
  }

  giveUp(): void {
    native().giveUp(this.#source.handle, this.#handle)
  }

  get done(): Promise<void> {
    this.#done ??= new Promise<void>((resolve) => {
      if (!native().watch(this.#source.handle, this.#handle, resolve)) resolve()
    }).then(() => {
      const failed = native().firstFailure(this.#handle)
      if (failed >= 0) this.wait(failed)
    })
    return this.#done
  }

  #checkIndex(index: number): void {
    const count = this.#reads.length / readNumbers
    if (Number.isSafeInteger(index) && index >= 0 && index < count) return
    throw outOfRange(`the batch has reads 0 to ${count - 1}, got ${index}`)
  }

  #explain(
    index: number,
    { error, have, drive }: { error: number; have: number; drive: number }
  ): UringError {
    const [file, offset, length] = this.#reads.subarray(readNumbers * index) as unknown as [
      number,
      number,
      number
    ]
    const path = this.#source.files[file]![drive]!
    const where = { file: path, offset, needBytes: length }
    if (error === endOfFile) {
      const message = `${path} ends inside a read: ${length} bytes needed from offset ${offset}, ${have} there`
      return new UringError('ERR_URING_EOF', message, { ...where, haveBytes: have })
    }
    if (error === cancelled) {
      const message = `${length} bytes from offset ${offset} of ${path} were given up before they were read`
      return new UringError('ERR_URING_GIVEN_UP', message, where)
    }
    const message = `${path} cannot be read: ${errorName(error)} at offset ${offset + have}, within ${length} bytes from offset ${offset}`
    return new UringError('ERR_URING_READ', message, { ...where, haveBytes: have })
  }
}
