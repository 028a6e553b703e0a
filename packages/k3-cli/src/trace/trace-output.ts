import { OutputFileError } from '../output-files.js'
import { WholeFile } from '../whole-file.js'
import { TraceFileError } from './errors.js'

/** A trace or a plot, opened before the work that makes it. @throws TraceFileError ERR_TRACE_WRITE */
export class TraceOutput implements Disposable {
  readonly #file: WholeFile

  constructor(file: string) {
    this.#file = asTrace(() => new WholeFile(file))
  }

  /** All of it. @throws TraceFileError ERR_TRACE_WRITE, and leaves what was there */
  write(content: Uint8Array | string): void {
    asTrace(() => this.#file.write(content))
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]()
  }
}

const asTrace = <T>(write: () => T): T => {
  try {
    return write()
  } catch (cause) {
    if (!(cause instanceof OutputFileError)) throw cause
    throw new TraceFileError('ERR_TRACE_WRITE', cause.file, cause.message, { cause })
  }
}
