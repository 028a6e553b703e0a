import { existsSync, readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import path from 'node:path'
import { UsageError } from './usage-error.js'

/** A file that cannot be written; `file` is its path, `cause` what the system said. */
export class OutputFileError extends Error {
  readonly code = 'ERR_OUTPUT_WRITE'
  readonly file: string
  override readonly name = 'OutputFileError'

  constructor(file: string, cause: unknown) {
    super(`${file} cannot be written: ${(cause as Error).message}`, { cause })
    this.file = file
  }
}

/** Files by what a message calls them: a flag, an argument. Absent ones are undefined. */
export type NamedFiles = Readonly<Record<string, string | undefined>>

/** What a command writes, and what it reads while or before it does. */
export interface FilesOfRun {
  readonly outputs: NamedFiles
  readonly inputs?: NamedFiles
  /** Folders of the model that runs. */
  readonly folders?: readonly string[]
}

/**
 * Refuses a run whose files would overwrite each other, however their paths are spelled: two outputs, an output and an
 * input, an output and a file of the model. A device may be written to twice.
 * @throws UsageError
 */
export const keepApart = ({ outputs, inputs = {}, folders = [] }: FilesOfRun): void => {
  const taken = new Map<string, string>()
  for (const folder of folders)
    for (const file of modelFiles(folder)) taken.set(identity(file), `${file}, a file of the model`)
  for (const [name, file] of given(inputs)) taken.set(identity(file), `what ${name} reads`)
  for (const [name, file] of given(outputs)) {
    if (isDevice(file)) continue
    const one = identity(file)
    const other = taken.get(one)
    if (other !== undefined) throw new UsageError(`${name} ${file} would overwrite ${other}`)
    taken.set(one, `what ${name} writes`)
  }
}

const given = (files: NamedFiles): [string, string][] =>
  Object.entries(files).filter((entry): entry is [string, string] => entry[1] !== undefined)

/** Those a checkpoint folder has for a model: results may lie beside them. */
const MODEL_FILE = /\.safetensors(\.index\.json)?$|^(config|tokenizer_config)\.json$|^tiktoken\.model$/

const modelFiles = (folder: string): string[] => {
  try {
    return readdirSync(folder)
      .filter((name) => MODEL_FILE.test(name))
      .map((name) => path.join(folder, name))
  } catch {
    return [] // whoever opens the model says what is wrong with it
  }
}

/** The file that links lead to, also where it is not there yet; links in a circle end somewhere in it. */
export const behindLinks = (file: string, most = 40): string => {
  if (existsSync(file)) return realpathSync(file)
  const link = linkText(file)
  if (link === null || most === 0) return file
  return behindLinks(path.resolve(realpathSync(path.dirname(file)), link), most - 1)
}

const linkText = (file: string): string | null => {
  try {
    return readlinkSync(file)
  } catch {
    return null // no link, or nothing at all
  }
}

/** The same for every path of one file, whether it is there yet or not. */
const identity = (file: string): string => {
  if (existsSync(file)) {
    const { dev, ino } = statSync(file, { bigint: true })
    return `${dev}:${ino}`
  }
  const target = path.resolve(behindLinks(file))
  const folder = path.dirname(target)
  return path.join(existsSync(folder) ? realpathSync(folder) : folder, path.basename(target))
}

const isDevice = (file: string): boolean => existsSync(file) && statSync(file).isCharacterDevice()
