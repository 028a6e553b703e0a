import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { SafetensorsError } from '../src/errors.ts'

/** A file around `json`: length field (or `length`), text as it stands, data. */
export function fileOf(json: string | Uint8Array, data: number | Uint8Array = 0, length?: bigint): Buffer {
  const text = typeof json === 'string' ? Buffer.from(json) : json
  const prefix = Buffer.alloc(8)
  prefix.writeBigUInt64LE(length === undefined ? BigInt(text.length) : length)
  return Buffer.concat([prefix, text, typeof data === 'number' ? Buffer.alloc(data) : data])
}

/** One member of a header, as compact JSON. */
export const entry = (dtype: string, shape: readonly number[], begin: number, end: number): string =>
  JSON.stringify({ dtype, shape, data_offsets: [begin, end] })

/** The error `action` ends with; anything that is no SafetensorsError fails the test. */
export async function errorOf(action: () => unknown): Promise<SafetensorsError> {
  try {
    await action()
  } catch (error) {
    if (error instanceof SafetensorsError) return error
    throw error
  }
  throw new Error('expected a SafetensorsError, nothing was thrown')
}

export const codeOf = async (action: () => unknown): Promise<string> => (await errorOf(action)).code

/** A folder that is removed after the tests of the file. */
export function temporaryFolder(files: Record<string, string | Uint8Array> = {}): string {
  const dir = mkdtempSync(join(tmpdir(), 'safetensors-'))
  afterAll(() => rmSync(dir, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, name), content)
  return dir
}

/** A shard with one F32 [1] per name. */
export function shardOf(...names: string[]): Uint8Array {
  const members = names.map((name, i) => `${JSON.stringify(name)}:${entry('F32', [1], 4 * i, 4 * i + 4)}`)
  return fileOf(`{${members.join()}}`, 4 * names.length)
}

export const indexOf = (weightMap: Record<string, string>, totalSize?: number | string): string =>
  JSON.stringify({
    ...(totalSize === undefined ? {} : { metadata: { total_size: totalSize } }),
    weight_map: weightMap
  })

export const INDEX = 'model.safetensors.index.json'
