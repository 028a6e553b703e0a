import type { FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { K3Error } from '../errors.js'
import { openRegularFile } from '../regular-file.js'

const PREFIX_BYTES = 8

/**
 * The copies of each shard by folder, null where a folder has none. `files` are those the checkpoint was opened with;
 * both are absolute paths.
 * @throws ERR_K3_SHARD_COPY when a copy cannot be read, or has another size or another header
 */
export const shardCopies = async (
  files: readonly string[],
  folders: readonly string[]
): Promise<readonly (readonly (string | null)[])[]> => {
  const copies: (string | null)[][] = []
  for (const file of files) {
    const row: (string | null)[] = []
    for (const folder of folders) {
      const candidate = path.join(folder, path.basename(file))
      row.push(candidate === file || (await isCopy(candidate, file)) ? candidate : null)
    }
    copies.push(row)
  }
  return copies
}

/** False when there is no such file. */
const isCopy = async (candidate: string, original: string): Promise<boolean> => {
  const have = await beginning(candidate).catch((cause: Error) => {
    throw differs(candidate, original, `it cannot be read: ${cause.message}`, cause)
  })
  if (have === null) return false
  const need = (await beginning(original))!
  if (have.size !== need.size)
    throw differs(candidate, original, `it has ${have.size} bytes, not ${need.size}`)
  if (!have.header.equals(need.header)) throw differs(candidate, original, 'its header lists something else')
  return true
}

/** Size of a shard and the bytes of its header, which was checked when the checkpoint was opened; null when absent. */
const beginning = async (path: string): Promise<{ size: number; header: Buffer } | null> => {
  let file: FileHandle
  try {
    file = await openRegularFile(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  try {
    const { size } = await file.stat()
    const prefix = Buffer.alloc(PREFIX_BYTES)
    await file.read(prefix, 0, PREFIX_BYTES, 0)
    const header = Buffer.alloc(Math.min(PREFIX_BYTES + Number(prefix.readBigUInt64LE()), size))
    await file.read(header, 0, header.length, 0)
    return { size, header }
  } finally {
    await file.close()
  }
}

const differs = (file: string, original: string, why: string, cause?: Error) =>
  new K3Error('ERR_K3_SHARD_COPY', `${file} is no copy of ${original}: ${why}`, { file, cause })
