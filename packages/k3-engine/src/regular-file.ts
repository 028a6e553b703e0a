import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

/**
 * Opens a file for reading, and refuses anything but a regular one: a pipe under its name would be waited for, perhaps for
 * ever. The caller closes it.
 * @throws the error of the system, or one that says what is wrong
 */
export const openRegularFile = async (file: string): Promise<FileHandle> => {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  if ((await handle.stat()).isFile()) return handle
  await handle.close()
  throw new Error(`${file} is no regular file`)
}
