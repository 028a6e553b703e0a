import { randomUUID } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import path from 'node:path'
import { behindLinks, OutputFileError } from './output-files.js'

/**
 * A file that is written once. It is opened before anything runs, so that what cannot be written is known at once, and
 * has its name only when it is whole; a device or a pipe is written as it is. Of two runs that write one file, the last one
 * to end has its way: each has a temporary file of its own.
 */
export class WholeFile implements Disposable {
  readonly #file: string
  readonly #temporary: string
  readonly #descriptor: number
  #isWhole = false
  readonly #remove = (): void => {
    if (!this.#isWhole && this.#temporary !== this.#file) rmSync(this.#temporary, { force: true })
  }

  /** @throws OutputFileError when the file cannot be written */
  constructor(file: string) {
    try {
      const isFile = !existsSync(file) || statSync(file).isFile()
      this.#file = isFile ? behindLinks(file) : file
      this.#temporary = isFile
        ? path.join(path.dirname(this.#file), `.${path.basename(this.#file)}.${randomUUID()}.part`)
        : this.#file
      this.#descriptor = isFile ? openSync(this.#temporary, 'w') : openAtOnce(file)
      process.once('exit', this.#remove) // also when a signal ends the process
    } catch (cause) {
      throw new OutputFileError(file, cause)
    }
  }

  /** All of its content. @throws OutputFileError, and leaves what was there */
  write(content: Uint8Array | string): void {
    try {
      writeFileSync(this.#descriptor, content)
      if (this.#temporary !== this.#file) renameSync(this.#temporary, this.#file)
    } catch (cause) {
      throw new OutputFileError(this.#file, cause)
    }
    this.#isWhole = true
  }

  [Symbol.dispose](): void {
    process.off('exit', this.#remove)
    closeSync(this.#descriptor)
    this.#remove()
  }
}

/** Opens a device or a pipe for writing. A pipe that nobody reads is refused, where a plain open would wait for ever. */
const openAtOnce = (file: string): number => {
  const probe = openSync(file, constants.O_WRONLY | constants.O_NONBLOCK)
  try {
    return openSync(file, 'w') // while the probe is open, so that a reader does not see the end
  } finally {
    closeSync(probe)
  }
}
