import { quote, SafetensorsError } from './errors.ts'
import { CLOSE_BRACE, JsonScanner, OPEN_BRACE, QUOTE } from './json-scanner.ts'
import { MAX_INDEX_BYTES, MAX_SHARDS } from './limits.ts'
import { RepeatCheck } from './repeat-check.ts'

/** What `*.safetensors.index.json` says. */
export interface ShardIndex {
  file: string
  /** Tensor names by the shard that holds them. */
  shards: ReadonlyMap<string, readonly string[]>
  /** Source text of `metadata.total_size`, or null when the index has none. */
  totalSize: string | null
}

/** Refuses an index by its size, before it is read. */
export function checkIndexSize(bytes: number, file: string): void {
  if (bytes <= MAX_INDEX_BYTES) return
  throw new SafetensorsError(
    'ERR_SAFETENSORS_INDEX_TOO_LARGE',
    `expected an index of at most ${MAX_INDEX_BYTES} bytes, found ${bytes}`,
    { file }
  )
}

/** Validates the text of an index. `bytes` is read only and not kept. */
export function parseIndex(bytes: Uint8Array, file: string): ShardIndex {
  const scanner = new JsonScanner(bytes, file, 0)
  if (scanner.peek() !== OPEN_BRACE) {
    throw scanner.error(
      'ERR_SAFETENSORS_INDEX_TYPE',
      scanner.pos,
      bytes.length === 0
        ? 'expected an object, found an empty file'
        : `expected an object, found byte ${bytes[scanner.pos]} in place of '{'`
    )
  }
  let shards: Map<string, string[]> | null = null
  let totalSize: string | null = null
  scanner.members((name) => {
    if (name === 'weight_map') shards = readWeightMap(scanner)
    else if (name === 'metadata') totalSize = readTotalSize(scanner)
    else scanner.skipValue()
  })
  if (scanner.peek() !== -1) {
    throw scanner.error(
      'ERR_SAFETENSORS_JSON_SYNTAX',
      scanner.pos,
      `expected the end of the index, found byte ${bytes[scanner.pos]}`
    )
  }
  if (shards === null) {
    throw scanner.error('ERR_SAFETENSORS_INDEX_NO_WEIGHT_MAP', 0, 'the index has no weight_map')
  }
  return { file, shards, totalSize }
}

/** Metadata is informative, so only its JSON is checked here; whether the number is right is seen once all shards are. */
function readTotalSize(scanner: JsonScanner): string | null {
  if (scanner.peek() !== OPEN_BRACE) {
    scanner.skipValue()
    return null
  }
  let totalSize: string | null = null
  scanner.members((name) => {
    scanner.peek()
    const at = scanner.pos
    scanner.skipValue()
    if (name === 'total_size') totalSize = scanner.text(at)
  })
  return totalSize
}

function readWeightMap(scanner: JsonScanner): Map<string, string[]> {
  const byte = scanner.peek()
  const at = scanner.pos
  if (byte !== OPEN_BRACE) {
    scanner.skipValue()
    throw scanner.error(
      'ERR_SAFETENSORS_INDEX_WEIGHT_MAP_TYPE',
      at,
      `weight_map: expected an object of tensor names, found ${scanner.text(at)}`
    )
  }
  const shards = new Map<string, string[]>()
  const repeats = new RepeatCheck()
  let shard = ''
  let listed: string[] = []
  scanner.consume(OPEN_BRACE)
  for (let first = true; scanner.next(CLOSE_BRACE, first); first = false) {
    const keyAt = scanner.pos
    scanner.scanKey()
    const tensor = scanner.string()
    scanner.tensor = tensor
    if (repeats.isRepeat(tensor)) {
      throw scanner.error(
        'ERR_SAFETENSORS_INDEX_DUPLICATE',
        keyAt,
        'this name stands twice in weight_map: which shard is meant is ambiguous'
      )
    }
    const valueAt = scanShardName(scanner)
    // sorted by tensor name, an index stays in one shard for thousands of entries
    if (first || !scanner.stringIs(shard)) {
      shard = scanner.string()
      const known = shards.get(shard)
      if (known === undefined) checkShardName(scanner, shard, valueAt, shards.size)
      listed = known === undefined ? [] : known
      shards.set(shard, listed)
    }
    listed.push(tensor)
  }
  scanner.tensor = null
  return shards
}

function scanShardName(scanner: JsonScanner): number {
  const byte = scanner.peek()
  const at = scanner.pos
  if (byte !== QUOTE) {
    scanner.skipValue()
    throw scanner.error(
      'ERR_SAFETENSORS_INDEX_SHARD_TYPE',
      at,
      `expected the name of a shard file, found ${scanner.text(at)}`
    )
  }
  scanner.scanString()
  return at
}

function checkShardName(scanner: JsonScanner, name: string, at: number, count: number): void {
  if (!isPlainFileName(name)) {
    throw scanner.error(
      'ERR_SAFETENSORS_INDEX_SHARD_NAME',
      at,
      `expected a plain file name in the folder of the index, found ${quote(name)}: paths are not followed`
    )
  }
  if (count === MAX_SHARDS) {
    throw scanner.error('ERR_SAFETENSORS_TOO_MANY_SHARDS', at, `more than ${MAX_SHARDS} shards`)
  }
}

/** False for whatever could name a file elsewhere on any system: separators, drives, dots, NUL. */
export function isPlainFileName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/\\:\0]/.test(name)
}
