import type { K3Config } from '../config.js'
import type { LayerPlan } from '../layer-plan.js'
import {
  expertTensors,
  type TensorDtype,
  type TensorRecord,
  tensorBytes,
  trunkTensors
} from '../tensor-names.js'
import type { ShardTally } from './bind.js'
import { readCheckpoint } from './open-checkpoint.js'

/** One shard of a checkpoint; all sizes in bytes. */
export interface ShardReport {
  /** name in the folder */
  readonly file: string
  /** 8 + N: where the data starts */
  readonly headerBytes: number
  readonly tensors: number
  readonly dtypeBytes: Readonly<Record<TensorDtype, number>>
  /** of the complete file, also when the folder holds headers only */
  readonly fileBytes: number
  /** file offset of the first U8 tensor; null in a shard without experts */
  readonly expertAreaStart: number | null
}

/** One layer of a checkpoint. */
export interface LayerReport extends LayerPlan {
  /** all tensors but the routed experts' */
  readonly trunkBytes: number
  readonly expertBytes: number
}

/** What a checkpoint consists of, as plain data. */
export interface CheckpointReport {
  readonly dir: string
  readonly config: K3Config
  readonly layers: readonly LayerReport[]
  readonly shards: readonly ShardReport[]
  readonly census: Readonly<Record<TensorDtype, { readonly records: number; readonly bytes: number }>>
  readonly records: number
  readonly tensorBytes: number
  readonly fileBytes: number
  /** what is no reason to refuse the folder but worth showing */
  readonly notices: readonly string[]
}

/**
 * Checks a checkpoint like `openCheckpoint` and reports its composition.
 * `headersOnly`: the shards are cut after their headers; sizes are those of the complete files.
 * @throws what openCheckpoint throws
 */
export async function inspectCheckpoint(
  dir: string,
  { headersOnly }: { readonly headersOnly: boolean }
): Promise<CheckpointReport> {
  const { dir: absolute, config, plan, sharded, binding } = await readCheckpoint(dir, headersOnly)
  const shards = sharded.shards.map(({ name, tensors }, file) =>
    shardReport(name, tensors, binding.tallies[file]!)
  )
  return {
    dir: absolute,
    config,
    layers: plan.map((layer) => layerReport(config, layer)),
    shards,
    census: census(binding.tallies),
    records: sharded.size,
    tensorBytes: sharded.tensorBytes,
    fileBytes: sharded.fileBytes,
    notices: sharded.notices.map(({ message }) => message)
  }
}

function shardReport(
  file: string,
  { dataOffset, fileBytes }: { readonly dataOffset: number; readonly fileBytes: number },
  { records, bytes, expertAreaStart }: ShardTally
): ShardReport {
  return {
    file,
    headerBytes: dataOffset,
    tensors: sum(Object.values(records)),
    dtypeBytes: bytes,
    fileBytes,
    expertAreaStart: Number.isFinite(expertAreaStart) ? expertAreaStart : null
  }
}

function census(tallies: readonly ShardTally[]): CheckpointReport['census'] {
  const of = (dtype: TensorDtype) => ({
    records: sum(tallies.map(({ records }) => records[dtype])),
    bytes: sum(tallies.map(({ bytes }) => bytes[dtype]))
  })
  return { F32: of('F32'), BF16: of('BF16'), U8: of('U8') }
}

function layerReport(config: K3Config, layer: LayerPlan): LayerReport {
  const bytes = (records: readonly TensorRecord[]): number => sum(records.map(tensorBytes))
  const expertBytes = layer.ffn === 'moe' ? config.moe.expertCount * bytes(expertTensors(config)) : 0
  return { ...layer, trunkBytes: bytes(trunkTensors(config, layer)), expertBytes }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
