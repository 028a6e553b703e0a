import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { quote, quoteList, SafetensorsError } from './errors.ts'
import { openRegular, readExactly, readHeader } from './file.ts'
import { checkIndexSize, parseIndex, type ShardIndex } from './index-json.ts'
import { MAX_SHARDS } from './limits.ts'
import { joinShards, type ShardedCheckpoint } from './sharded.ts'
import type { TensorTable } from './tensor-table.ts'

const SHARD_SUFFIX = '.safetensors'
const INDEX_SUFFIX = '.safetensors.index.json'
/** `model-00001-of-000096.safetensors`: stem, running number, total. */
const NUMBERED = /^(.+)-(\d{1,9})-of-(\d{1,9})\.safetensors$/

/**
 * Opens a folder as one checkpoint: validates its index, if it has one, and the header of every shard, and checks
 * that both name the same tensors. Reads headers only, keeps no file open, follows no path out of an index.
 *
 * Without an index the folder is numbered shards, all of them and nothing else, or else every `*.safetensors` in it.
 * `headersOnly`: the files hold 8 + N bytes and no data; sizes are those the data would have. `also`: folders in which
 * files are looked for that the first one lacks.
 * @throws ERR_SAFETENSORS_IO, _NOT_A_FILE, _NO_FILES, _STRAY_FILE, _SHARD_MISSING, _INDEX_*, _TENSOR_MISSING,
 *   _TENSOR_MISPLACED, _TENSOR_IN_TWO_SHARDS, _NOT_HEADER_ONLY, and what parseHeader throws for a shard
 */
export async function openSharded(
  dir: string,
  options: { headersOnly?: boolean; also?: readonly string[] } = {}
): Promise<ShardedCheckpoint> {
  const { headersOnly = false, also = [] } = options
  const folderOf = new Map<string, string>()
  for (const folder of [dir, ...also])
    for (const name of await listFiles(folder)) if (!folderOf.has(name)) folderOf.set(name, folder)
  const files = [...folderOf.keys()]
  const notices: SafetensorsError[] = []
  const indexFile = findIndex(dir, files)
  const index = indexFile === null ? null : await readIndex(join(folderOf.get(indexFile)!, indexFile))
  const names = index === null ? shardsByName(dir, files, notices) : shardsByIndex(dir, files, index, notices)
  const locate = (name: string) => join(folderOf.get(name)!, name)
  const header = (name: string) => readShardHeader(locate(name), headersOnly)
  return joinShards({ parallel: 1, locate, header }, names, index, notices)
}

async function listFiles(dir: string): Promise<string[]> {
  try {
    return await readdir(dir)
  } catch (cause) {
    throw new SafetensorsError('ERR_SAFETENSORS_IO', `cannot list the folder: ${String(cause)}`, {
      file: dir,
      cause
    })
  }
}

/** macOS writes `._name` beside each file it copies to a foreign disk; it holds attributes, not tensors. */
const isAppleDouble = (name: string): boolean => name.startsWith('._')

function findIndex(dir: string, files: readonly string[]): string | null {
  const found = files.filter((name) => name.endsWith(INDEX_SUFFIX) && !isAppleDouble(name))
  if (found.length > 1) {
    throw new SafetensorsError(
      'ERR_SAFETENSORS_INDEX_AMBIGUOUS',
      `expected one index, found ${quoteList(found)}: remove those that do not belong to the model`,
      { file: dir }
    )
  }
  return found.length === 1 ? found[0]! : null
}

async function readIndex(path: string): Promise<ShardIndex> {
  const file = await openRegular(path)
  try {
    checkIndexSize(file.bytes, path)
    return parseIndex(await readExactly(file, 0, file.bytes), path)
  } finally {
    await file.handle.close()
  }
}

async function readShardHeader(path: string, headersOnly: boolean): Promise<TensorTable> {
  const file = await openRegular(path)
  try {
    return await readHeader(file, headersOnly)
  } finally {
    await file.handle.close()
  }
}

const strayNotice = (dir: string, name: string, reason: string): SafetensorsError =>
  new SafetensorsError('ERR_SAFETENSORS_STRAY_FILE', `left out: ${reason}`, { file: join(dir, name) })

const missingShards = (dir: string, missing: readonly string[], total: number): SafetensorsError =>
  new SafetensorsError(
    'ERR_SAFETENSORS_SHARD_MISSING',
    `${missing.length} of ${total} shards are not there: ${quoteList(missing)}; fetch them`,
    { file: join(dir, missing[0]!) }
  )

function shardsByIndex(
  dir: string,
  files: readonly string[],
  index: ShardIndex,
  notices: SafetensorsError[]
): readonly string[] {
  const names = [...index.shards.keys()]
  const present = new Set(files)
  const missing = names.filter((name) => !present.has(name))
  if (missing.length > 0) throw missingShards(dir, missing, names.length)
  for (const name of files) {
    if (name.endsWith(SHARD_SUFFIX) && !index.shards.has(name)) {
      notices.push(strayNotice(dir, name, 'the index does not name this file'))
    }
  }
  return names
}

function shardsByName(dir: string, files: readonly string[], notices: SafetensorsError[]): string[] {
  const found = files.filter((name) => name.endsWith(SHARD_SUFFIX))
  const shards = found.filter((name) => !isAppleDouble(name))
  for (const name of found.filter(isAppleDouble)) {
    notices.push(strayNotice(dir, name, 'an AppleDouble file holds no tensors'))
  }
  if (shards.length === 0) {
    throw new SafetensorsError('ERR_SAFETENSORS_NO_FILES', 'no index and no *.safetensors file', {
      file: dir
    })
  }
  const first = shards.find((name) => NUMBERED.test(name))
  if (first !== undefined) checkNumbered(dir, shards, first)
  return shards
}

/** Numbered shards say themselves how many they are: all must be there, and a file of another kind is no part of them. */
function checkNumbered(dir: string, shards: readonly string[], first: string): void {
  const [, stem, , total] = NUMBERED.exec(first)!
  const count = Number(total)
  const strays: string[] = []
  const numbers = new Set<number>()
  for (const name of shards) {
    const match = NUMBERED.exec(name)
    const number = match === null ? 0 : Number(match[2])
    const belongs = match !== null && match[1] === stem && match[3] === total
    if (!belongs || number < 1 || number > count || numbers.has(number)) strays.push(name)
    else numbers.add(number)
  }
  if (strays.length > 0) {
    throw new SafetensorsError(
      'ERR_SAFETENSORS_STRAY_FILE',
      `expected only shards ${quote(`${stem}-…-of-${total}`)}, found ${quoteList(strays)}: ` +
        'which files make up the model is ambiguous; remove them or add an index',
      { file: join(dir, strays[0]!) }
    )
  }
  if (count > MAX_SHARDS) {
    throw new SafetensorsError('ERR_SAFETENSORS_TOO_MANY_SHARDS', `${count} shards, limit ${MAX_SHARDS}`, {
      file: join(dir, first)
    })
  }
  const digits = NUMBERED.exec(first)![2]!.length
  const missing = Array.from({ length: count }, (_, i) => i + 1)
    .filter((number) => !numbers.has(number))
    .map((number) => `${stem}-${String(number).padStart(digits, '0')}-of-${total}${SHARD_SUFFIX}`)
  if (missing.length > 0) throw missingShards(dir, missing, count)
}
