import { quote, quoteList, SafetensorsError } from './errors.ts'
import type { ShardIndex } from './index-json.ts'
import type { TensorInfo, TensorTable } from './tensor-table.ts'

/** One file of a checkpoint. */
export interface Shard {
  /** Name in the folder. */
  readonly name: string
  /** Path or URL. */
  readonly path: string
  /** Everything the file holds, listed in the index or not. */
  readonly tensors: TensorTable
}

/** A tensor and the shard that holds it, as a position in `ShardedCheckpoint.shards`. */
export interface ShardTensorInfo extends TensorInfo {
  readonly shard: number
}

/** Where shard headers come from. */
export interface ShardSource {
  /** Headers to ask for at a time. */
  readonly parallel: number
  /** Path or URL of a file. */
  locate(name: string): string
  /** Validated header of a shard. */
  header(name: string): Promise<TensorTable>
}

/**
 * A checkpoint of one or more files, headers only: which tensor lies where.
 * Tensors come in shard order, then header order; shards in name order.
 */
export class ShardedCheckpoint {
  readonly shards: readonly Shard[]
  /** Bytes of all tensors. */
  readonly tensorBytes: number
  /**
   * What was noticed but is no reason to refuse: tensors or files the index does not list, a wrong total_size.
   * Print them; a strict caller throws the first one.
   */
  readonly notices: readonly SafetensorsError[]
  private readonly shardOf: ReadonlyMap<string, number>

  constructor(
    shards: readonly Shard[],
    shardOf: ReadonlyMap<string, number>,
    tensorBytes: number,
    notices: readonly SafetensorsError[]
  ) {
    this.shards = shards
    this.shardOf = shardOf
    this.tensorBytes = tensorBytes
    this.notices = notices
  }

  /** Number of tensors. */
  get size(): number {
    return this.shardOf.size
  }

  /** Size in bytes of all files; with `headersOnly`, the size they would have with their data. */
  get fileBytes(): number {
    return this.shards.reduce((sum, { tensors }) => sum + tensors.fileBytes, 0)
  }

  names(): IterableIterator<string> {
    return this.shardOf.keys()
  }

  has(name: string): boolean {
    return this.shardOf.has(name)
  }

  /** @throws ERR_SAFETENSORS_TENSOR_NOT_FOUND */
  get(name: string): ShardTensorInfo {
    const shard = this.shardOf.get(name)
    if (shard === undefined) {
      throw new SafetensorsError(
        'ERR_SAFETENSORS_TENSOR_NOT_FOUND',
        `no tensor ${quote(name)} among ${this.size} in ${this.shards.length} files`,
        { tensor: name }
      )
    }
    const tensor = this.shards[shard]!.tensors.get(name)
    return Object.assign(tensor, { shard })
  }

  *[Symbol.iterator](): IterableIterator<ShardTensorInfo> {
    for (const name of this.shardOf.keys()) yield this.get(name)
  }
}

/** Reads the headers of all shards and joins them; with an index, both must say the same. */
export async function joinShards(
  source: ShardSource,
  names: readonly string[],
  index: ShardIndex | null,
  notices: SafetensorsError[]
): Promise<ShardedCheckpoint> {
  const join = new ShardJoin(index)
  const sorted = [...names].sort(compareNames)
  for (let i = 0; i < sorted.length; i += source.parallel) {
    const group = sorted.slice(i, i + source.parallel)
    const results = await Promise.allSettled(group.map((name) => source.header(name)))
    results.forEach((result, k) => {
      if (result.status === 'rejected') throw result.reason
      join.add({ name: group[k]!, path: source.locate(group[k]!), tensors: result.value })
    })
  }
  return join.finish(notices)
}

/** Code unit order, the same on every system. */
const compareNames = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Takes one shard after the other and crosses its tensors off the index; what is left is missing. */
class ShardJoin {
  private readonly index: ShardIndex | null
  private readonly shards: Shard[] = []
  private readonly shardOf = new Map<string, number>()
  private readonly unlisted = new Map<string, number>()
  private readonly missing: { tensor: string; shard: string }[] = []
  private tensorBytes = 0

  constructor(index: ShardIndex | null) {
    this.index = index
  }

  add(shard: Shard): void {
    const number = this.shards.push(shard) - 1
    const { tensors } = shard
    const wanted = new Set(this.index?.shards.get(shard.name))
    this.tensorBytes += tensors.dataBytes
    for (const name of tensors.names()) {
      this.checkNew(name, shard)
      if (this.index === null || wanted.delete(name)) {
        this.shardOf.set(name, number)
      } else {
        this.unlisted.set(name, number)
        this.tensorBytes -= tensors.get(name).byteLength
      }
    }
    for (const tensor of wanted) this.missing.push({ tensor, shard: shard.name })
  }

  private checkNew(name: string, shard: Shard): void {
    const other = this.shardOf.get(name) ?? this.unlisted.get(name)
    if (other === undefined) return
    throw new SafetensorsError(
      'ERR_SAFETENSORS_TENSOR_IN_TWO_SHARDS',
      `also stored in ${quote(this.shards[other]!.name)}: which copy is meant is ambiguous`,
      { file: shard.path, tensor: name, offset: shard.tensors.get(name).fileOffset }
    )
  }

  finish(notices: readonly SafetensorsError[]): ShardedCheckpoint {
    const found = [...notices, ...this.unlistedNotices()]
    if (this.index !== null) {
      this.checkNothingMissing(this.index)
      const { file, totalSize } = this.index
      if (totalSize !== null && totalSize !== String(this.tensorBytes)) {
        found.push(totalSizeNotice(file, totalSize, this.tensorBytes))
      }
    }
    return new ShardedCheckpoint(this.shards, this.shardOf, this.tensorBytes, found)
  }

  private checkNothingMissing({ file }: ShardIndex): void {
    const first = this.missing[0]
    if (first === undefined) return
    const { tensor, shard } = first
    const actual = this.unlisted.get(tensor)
    if (actual !== undefined) {
      throw new SafetensorsError(
        'ERR_SAFETENSORS_TENSOR_MISPLACED',
        `the index says shard ${quote(shard)}, but the tensor lies in ${quote(this.shards[actual]!.name)}`,
        { file, tensor }
      )
    }
    const all = quoteList(this.missing.map((one) => one.tensor))
    throw new SafetensorsError(
      'ERR_SAFETENSORS_TENSOR_MISSING',
      `shard ${quote(shard)} does not hold this tensor although the index says so; not found in all: ${all}`,
      { file, tensor }
    )
  }

  private unlistedNotices(): SafetensorsError[] {
    const byShard = new Map<number, string[]>()
    for (const [name, number] of this.unlisted) {
      const names = byShard.get(number)
      if (names === undefined) byShard.set(number, [name])
      else names.push(name)
    }
    return [...byShard].map(
      ([number, names]) =>
        new SafetensorsError(
          'ERR_SAFETENSORS_INDEX_UNLISTED',
          `the index does not list ${names.length} tensors of this shard, they are left out: ${quoteList(names)}`,
          { file: this.shards[number]!.path, tensor: names[0]! }
        )
    )
  }
}

const totalSizeNotice = (file: string, stated: string, tensorBytes: number): SafetensorsError =>
  new SafetensorsError(
    'ERR_SAFETENSORS_TOTAL_SIZE',
    `metadata.total_size: the listed tensors have ${tensorBytes} bytes, the index says ${stated}`,
    { file }
  )
