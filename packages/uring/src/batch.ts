import { outOfRange, UringError } from './errors.js'
import { native } from './native.js'
import { type ReadNumbers, readNumbers } from './placement.js'
import { errorName } from './refusal.js'

/** The reads of one submit(). They progress whether or not anybody waits. */
export interface Batch {
  /**
   * Blocks this thread until read `index` is over. Any order, any number of times.
   * @throws ERR_URING_EOF, ERR_URING_READ of that read; RangeError for an index outside the batch
   */
  wait(index: number): void
  /** Settles, through the event loop, once every read is over; rejects with the error of the first one that failed. */
  readonly done: Promise<void>
}

/** What a batch needs of its reader. */
export interface BatchSource {
  readonly handle: object
  readonly paths: readonly string[]
}

const endOfFile = -1

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
    const count = this.#reads.length / readNumbers
    if (!Number.isSafeInteger(index) || index < 0 || index >= count) {
      throw outOfRange(`the batch has reads 0 to ${count - 1}, got ${index}`)
    }
    const failure = native().wait(this.#handle, index)
    if (failure) throw this.#explain(index, failure)
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

  #explain(index: number, { error, have }: { error: number; have: number }): UringError {
    const [file, offset, length] = this.#reads.subarray(readNumbers * index) as unknown as [
      number,
      number,
      number
    ]
    const path = this.#source.paths[file]!
    const where = { file: path, offset, needBytes: length }
    if (error === endOfFile) {
      const message = `${path} ends inside a read: ${length} bytes needed from offset ${offset}, ${have} there`
      return new UringError('ERR_URING_EOF', message, { ...where, haveBytes: have })
    }
    const message = `${path} cannot be read: ${errorName(error)} within ${length} bytes from offset ${offset}`
    return new UringError('ERR_URING_READ', message, where)
  }
}
