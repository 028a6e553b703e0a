import {
  byFileOrder,
  type K3Config,
  parseConfig,
  type TensorRecord,
  tensorBytes,
  tensorGroups
} from '@k3/engine/checkpoint'
import { formatHeader } from '@k3/safetensors'
import { configText, type Geometry } from '@k3/synth'
import { UsageError } from '../usage-error.js'

/** One file of tensors: its header bytes and what follows them. */
export interface ShardLayout {
  readonly name: string
  readonly records: readonly TensorRecord[]
  /** u8 [8 + N] */
  readonly header: Uint8Array
  readonly dataBytes: number
}

/** Every file of a checkpoint before any byte of data exists. */
export interface CheckpointLayout {
  readonly shards: readonly ShardLayout[]
  readonly config: string
  readonly index: string
  readonly tensorBytes: number
}

/** How the tensors are spread over files. */
export interface LayoutOptions {
  /** all tensors in one shard */
  readonly single: boolean
  /** projector and vision tower in two further shards, as released */
  readonly vision: boolean
}

/** Names, headers, index and configuration of a synthetic checkpoint. @throws UsageError for sizes no model may have */
export function layOut(geometry: Geometry, { single, vision }: LayoutOptions): CheckpointLayout {
  const config = configText(geometry)
  const groups = [...tensorGroups(readable(config), vision)].map(({ records }) => records)
  const perFile = single ? [groups.flat().sort(byFileOrder)] : groups
  const shards = perFile.map((records, i) => ({
    name: shardName(i + 1, perFile.length),
    records,
    header: formatHeader(records),
    dataBytes: records.reduce((sum, record) => sum + tensorBytes(record), 0)
  }))
  const total = shards.reduce((sum, { dataBytes }) => sum + dataBytes, 0)
  return { shards, config, index: indexText(shards, total), tensorBytes: total }
}

/** The geometry as the engine will read it; it has limits of its own. */
const readable = (config: string): K3Config => {
  try {
    return parseConfig(config)
  } catch (cause) {
    throw new UsageError(`no model can have this geometry: ${(cause as Error).message}`, { cause })
  }
}

const shardName = (number: number, count: number): string =>
  `model-${String(number).padStart(5, '0')}-of-${String(count).padStart(6, '0')}.safetensors`

/** model.safetensors.index.json: names ascending, indented by two spaces, one final newline. */
function indexText(shards: readonly ShardLayout[], total: number): string {
  const rows = shards.flatMap(({ name, records }) => records.map((record) => [record.name, name] as const))
  rows.sort(([a], [b]) => (a < b ? -1 : 1))
  // put together by hand: an object of half a million members costs JSON.stringify seconds
  const members = rows.map(([tensor, file]) => `    "${tensor}": "${file}"`).join(',\n')
  return `{\n  "metadata": {\n    "total_size": ${total}\n  },\n  "weight_map": {\n${members}\n  }\n}\n`
}
