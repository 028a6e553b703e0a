import { randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { behindLinks } from './output-files.js'

/**
 * Writes a file so that at every moment it is what it was or the whole of the new content. A failure leaves it alone. A
 * link stays one, and what it leads to is written.
 * @throws the error of the system
 */
export const writeWhole = async (file: string, content: string | Uint8Array, mode: number): Promise<void> => {
  const target = behindLinks(file)
  const temporary = path.join(path.dirname(target), `.${path.basename(target)}.${randomUUID()}.tmp`)
  try {
    const handle = await open(temporary, 'wx', mode)
    try {
      await handle.writeFile(content)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, target)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
