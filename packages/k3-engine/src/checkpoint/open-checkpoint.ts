import path from 'node:path'
import { openSharded, type ShardedCheckpoint, type TensorInfo } from '@k3/safetensors'
import { type K3Config, parseConfig } from '../config.js'
import { K3Error } from '../errors.js'
import { type LayerPlan, layerPlan } from '../layer-plan.js'
import { openRegularFile } from '../regular-file.js'
import { type Binding, bindRecords } from './bind.js'
import { expertSlot } from './expert-names.js'
import type { Checkpoint, ExpertArea, Extent } from './types.js'

/** A checkpoint folder as read: configuration, headers, and where each record lies. */
export interface ReadCheckpoint {
  readonly dir: string
  readonly config: K3Config
  readonly plan: readonly LayerPlan[]
  readonly sharded: ShardedCheckpoint
  readonly binding: Binding
}

/**
 * Reads config.json, index and shard headers of a folder and binds every record to its place. No file stays open. Shards
 * the folder lacks are looked for in those of `also`.
 * @throws ERR_K3_CONFIG_FILE when config.json cannot be read, and what parseConfig throws
 * @throws ERR_K3_TENSORS, ERR_K3_EXPERT_LAYOUT when the records are not those the configuration demands
 * @throws SafetensorsError for a malformed index or shard
 */
export async function openCheckpoint(dir: string, also: readonly string[] = []): Promise<Checkpoint> {
  const { config, plan, sharded, binding } = await readCheckpoint(dir, false, also)
  return new BoundCheckpoint(path.resolve(dir), config, plan, sharded, binding)
}

/** What {@link openCheckpoint} and `inspectCheckpoint` share. `headersOnly`: the shards hold headers without data. */
export async function readCheckpoint(
  dir: string,
  headersOnly: boolean,
  also: readonly string[] = []
): Promise<ReadCheckpoint> {
  const absolute = path.resolve(dir)
  const config = await readConfig(path.join(absolute, 'config.json'))
  const plan = layerPlan(config)
  const sharded = await openSharded(absolute, {
    headersOnly,
    also: also.map((folder) => path.resolve(folder))
  })
  const shards = sharded.shards.map(({ path: file, tensors }) => ({
    path: file,
    // what a shard holds beyond the index is left out, as its notice says; if it is needed, it is missing
    tensors: sharded.notices.length === 0 ? tensors : listed(tensors, sharded)
  }))
  return { dir: absolute, config, plan, sharded, binding: bindRecords(absolute, config, plan, shards) }
}

function* listed(tensors: Iterable<TensorInfo>, sharded: ShardedCheckpoint): Generator<TensorInfo> {
  for (const tensor of tensors) if (sharded.has(tensor.name)) yield tensor
}

async function readConfig(file: string): Promise<K3Config> {
  let bytes: Uint8Array
  try {
    await using handle = await openRegularFile(file)
    bytes = await handle.readFile()
  } catch (cause) {
    const why = (cause as Error).message
    const message = `${file} cannot be read: a checkpoint folder has config.json beside its shards (${why})`
    throw new K3Error('ERR_K3_CONFIG_FILE', message, { file, cause })
  }
  return parseConfig(decodeUtf8(bytes, file), file)
}

function decodeUtf8(bytes: Uint8Array, file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new K3Error('ERR_K3_CONFIG_JSON', `${file} is not UTF-8 text`, { file, cause })
  }
}

class BoundCheckpoint implements Checkpoint {
  readonly files: readonly string[]
  readonly notices: readonly string[]
  readonly #binding: Binding

  constructor(
    readonly dir: string,
    readonly config: K3Config,
    readonly plan: readonly LayerPlan[],
    sharded: ShardedCheckpoint,
    binding: Binding
  ) {
    this.files = sharded.shards.map(({ path: file }) => file)
    this.notices = sharded.notices.map(({ message }) => message)
    this.#binding = binding
  }

  extent(name: string): Extent {
    const extent = this.#binding.extents.get(name)
    if (extent !== undefined) return extent
    const expert = this.#expertExtent(name)
    if (expert === null) throw new RangeError(`${this.dir} has no tensor named '${name}'`)
    return expert
  }

  experts(layer: number): ExpertArea {
    const area = this.#binding.experts[layer]
    if (area === undefined || area === null) throw new RangeError(`layer ${layer} has no routed experts`)
    return area
  }

  #expertExtent(name: string): Extent | null {
    const slot = expertSlot(name, this.#binding.suffixes)
    const area = slot === null ? undefined : this.#binding.experts[slot.layer]
    if (slot === null || area === undefined || area === null) return null
    if (slot.expert >= this.config.moe.expertCount) return null
    return area.extent(slot.expert, slot.part)
  }
}
