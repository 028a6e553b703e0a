import { randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import path from 'node:path'

/** The calls that touch the disk. */
export interface FileCalls {
  readonly open: typeof open
  readonly rename: typeof rename
  readonly rm: typeof rm
}

// One write call takes at most 2 GiB on Linux.
const WRITE_BYTES = 1 << 26

/**
 * Writes a file of these parts so that at every moment, a crash and a power cut included, `file` is either what it was
 * or the whole of the new content: a new file beside it is written, flushed, and renamed over it. A failure removes the
 * new file; a killed process leaves it, named `.<name>.<random>.tmp`. Only its owner can read the file.
 */
export const writeAtomically = async (
  file: string,
  parts: readonly Uint8Array[],
  calls: FileCalls = { open, rename, rm }
): Promise<void> => {
  const folder = path.dirname(file)
  const temporary = path.join(folder, `.${path.basename(file)}.${randomUUID()}.tmp`)
  try {
    const handle = await calls.open(temporary, 'wx', 0o600)
    try {
      for (const part of parts) {
        for (let done = 0; done < part.length; ) {
          const length = Math.min(WRITE_BYTES, part.length - done)
          done += (await handle.write(part, done, length)).bytesWritten
        }
      }
      await handle.sync()
    } finally {
      await handle.close()
    }
    await calls.rename(temporary, file)
  } catch (error) {
    await calls.rm(temporary, { force: true })
    throw error
  }
  const directory = await calls.open(folder, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
