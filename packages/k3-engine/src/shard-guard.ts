import { type BigIntStats, statSync } from 'node:fs'
import { K3Error } from './errors.js'

/** Notices that a file is not the one that was opened: another in its place, or other bytes in it. */
export class ShardGuard {
  readonly #opened: ReadonlyMap<string, BigIntStats | undefined>

  constructor(files: readonly string[]) {
    this.#opened = new Map(files.map((file) => [file, look(file)]))
  }

  /**
   * `cause`: what failed, where a change may be the reason.
   * @throws ERR_K3_SHARD_CHANGED naming the first file that is gone, was replaced, or written to
   */
  verify(cause?: unknown): void {
    for (const [file, then] of this.#opened) {
      const now = look(file)
      const isSame =
        now !== undefined &&
        then !== undefined &&
        now.dev === then.dev &&
        now.ino === then.ino &&
        now.size === then.size &&
        now.mtimeNs === then.mtimeNs
      if (isSame) continue
      const what = now === undefined ? 'is gone' : 'was replaced or written to'
      const message = `${file} ${what} since the model was opened; open it again`
      throw new K3Error('ERR_K3_SHARD_CHANGED', message, { file, have: now?.size, need: then?.size, cause })
    }
  }

  /** What `work` finds in files it opens by name; refused unless they are those that were opened. @throws as `verify` */
  async watch<T>(work: () => Promise<T>): Promise<T> {
    try {
      const found = await work()
      this.verify()
      return found
    } catch (error) {
      this.verify(error)
      throw error
    }
  }
}

const look = (file: string): BigIntStats | undefined =>
  statSync(file, { bigint: true, throwIfNoEntry: false })
