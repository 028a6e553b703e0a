import { mkdir, readFile, stat, statfs } from 'node:fs/promises'
import path from 'node:path'
import { SynthWriteError } from './errors.js'

/** A file about to be written. */
export interface PlannedFile {
  readonly name: string
  readonly bytes: number
}

/**
 * Creates the folder if need be and checks that the files fit and replace nothing of another model.
 * @param config content of the config.json to be written
 * @throws ERR_SYNTH_OCCUPIED, ERR_SYNTH_SPACE, ERR_SYNTH_WRITE
 */
export async function prepareDestination(
  dir: string,
  files: readonly PlannedFile[],
  config: string
): Promise<void> {
  await named(dir, 'cannot create', makeFolder(path.resolve(dir)))
  await refuseOtherModel(dir, files, config)
  const need = files.reduce((sum, { bytes }) => sum + bytes, 0)
  const { bavail, bsize } = await named(dir, 'cannot tell the free space of', statfs(dir))
  const have = bavail * bsize
  if (need > have) {
    const message = `${dir} has ${have} bytes free, the checkpoint takes ${need}: free some or choose another disk`
    throw new SynthWriteError('ERR_SYNTH_SPACE', dir, message)
  }
}

/** Level by level: where a file system takes no folder, as /proc, the recursive mkdir of Node.js 20 tries for ever. */
async function makeFolder(dir: string): Promise<void> {
  if ((await ifPresent(stat(dir)))?.isDirectory()) return
  await makeFolder(path.dirname(dir))
  await mkdir(dir).catch(async (error: NodeJS.ErrnoException) => {
    // somebody else may have made it meanwhile
    if (error.code !== 'EEXIST' || !(await stat(dir)).isDirectory()) throw error
  })
}

/** The shards of a downloaded model have the same names as ours: a slip in --out must not replace them. */
async function refuseOtherModel(dir: string, files: readonly PlannedFile[], config: string): Promise<void> {
  const occupied = (file: string, what: string): never => {
    const message = `${file} ${what}: choose an empty folder, or one from an earlier run with the same geometry`
    throw new SynthWriteError('ERR_SYNTH_OCCUPIED', file, message)
  }
  for (const { name, bytes } of files) {
    const file = path.join(dir, name)
    const found = await named(file, 'cannot look at', ifPresent(stat(file)))
    if (found === null) continue
    if (!found.isFile()) occupied(file, 'is no regular file')
    const isOurs =
      name !== 'config.json' || (await named(file, 'cannot read', readFile(file, 'utf8'))) === config
    if (!isOurs) occupied(file, 'belongs to another model')
    if (found.size !== bytes) occupied(file, `has ${found.size} bytes, not ${bytes}`)
  }
}

/** @throws ERR_SYNTH_WRITE when it does not work out, with the path and what was attempted */
async function named<T>(file: string, attempt: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new SynthWriteError('ERR_SYNTH_WRITE', file, `${attempt} ${file}: ${String(cause)}`, cause)
  }
}

async function ifPresent<T>(pending: Promise<T>): Promise<T | null> {
  try {
    return await pending
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
