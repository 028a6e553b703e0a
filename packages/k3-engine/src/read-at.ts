import type { FileHandle } from 'node:fs/promises'

/** `bytes` bytes of a file from `offset` on, fewer only where the file ends: a read that comes back short is continued. */
export const readAt = async (
  handle: Pick<FileHandle, 'read'>,
  offset: number,
  bytes: number
): Promise<Buffer> => {
  const buffer = Buffer.alloc(bytes)
  let got = 0
  while (got < bytes) {
    const { bytesRead } = await handle.read(buffer, got, bytes - got, offset + got)
    if (bytesRead === 0) break
    got += bytesRead
  }
  return buffer.subarray(0, got)
}
