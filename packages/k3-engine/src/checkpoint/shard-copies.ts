import type { FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { K3Error } from '../errors.js'
import { readAt } from '../read-at.js'
import { openRegularFile } from '../regular-file.js'

const PREFIX_BYTES = 8
const PROBES = 4
const PROBE_BYTES = 4096

/**
 * The copies of each shard by folder, null where a folder has none. `files` are those the checkpoint was opened with;
 * both are absolute paths.
 * @throws ERR_K3_SHARD_COPY when a folder has no shard, or a copy cannot be read, or has another size, another header or other data where it is probed
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
  const idle = folders.findIndex((_, i) => i > 0 && copies.every((row) => row[i] === null))
  if (idle !== -1)
    throw new K3Error('ERR_K3_SHARD_COPY', `${folders[idle]}: no shard of this checkpoint is here`, {
      file: folders[idle]!
    })
  return copies
}

/** False when there is no such file. */
const isCopy = async (candidate: string, original: string): Promise<boolean> => {
  try {
    const have = await outline(candidate)
    const need = await outline(original)
    if (have.size !== need.size)
      throw differs(candidate, original, `it has ${have.size} bytes, not ${need.size}`)
    if (!have.header.equals(need.header))
      throw differs(candidate, original, 'its header lists something else')
    if (!have.probes.equals(need.probes)) throw differs(candidate, original, 'its data is another')
    return true
  } catch (cause) {
    if (cause instanceof K3Error) throw cause
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') return false
    throw differs(candidate, original, `it cannot be read: ${message}`, cause)
  }
}

/**
 * Size of a shard, the bytes of its header, which was checked when the checkpoint was opened, and some of its data: whole
 * shards take hours to compare, while those of another checkpoint with the same tensors differ wherever one looks.
 */
const outline = async (file: string): Promise<{ size: number; header: Buffer; probes: Buffer }> => {
  const handle = await openRegularFile(file)
  try {
    const { size } = await handle.stat()
    const prefix = await bytesAt(handle, 0, PREFIX_BYTES)
    const headerBytes = Math.min(PREFIX_BYTES + Number(prefix.readBigUInt64LE()), size)
    const header = await bytesAt(handle, 0, headerBytes)
    const probes: Buffer[] = []
    for (let i = 1; i <= PROBES; i++) {
      const at = headerBytes + Math.floor(((size - headerBytes) * i) / PROBES) - PROBE_BYTES
      probes.push(await bytesAt(handle, Math.max(headerBytes, at), PROBE_BYTES))
    }
    return { size, header, probes: Buffer.concat(probes) }
  } finally {
    await handle.close()
  }
}

/** Bytes of a file, zeros beyond its end. */
const bytesAt = async (handle: FileHandle, offset: number, count: number): Promise<Buffer> => {
  const bytes = Buffer.alloc(count)
  bytes.set(await readAt(handle, offset, count))
  return bytes
}

const differs = (file: string, original: string, why: string, cause?: unknown) =>
  new K3Error('ERR_K3_SHARD_COPY', `${file} is no copy of ${original}: ${why}`, { file, cause })
