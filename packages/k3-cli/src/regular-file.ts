import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

/**
 * Opens a file for reading. Anything but a regular file is refused: a pipe under its name would be waited for, perhaps for
 * ever, and `-` stands for one where a command can read one. The caller closes it.
 * @throws the error of the system, or one that says what is wrong
 */
export const openByName = async (file: string): Promise<FileHandle> => {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  if ((await handle.stat()).isFile()) return handle
  await handle.close()
  throw new Error('it is no regular file; - stands for standard input where a command reads it')
}

/** All bytes of a file. @throws as `openByName` */
export const readByName = async (file: string): Promise<Buffer> => {
  const handle = await openByName(file)
  try {
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}
