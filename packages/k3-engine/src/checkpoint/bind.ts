import type { K3Config } from '../config.js'
import type { LayerPlan } from '../layer-plan.js'
import {
  modelTensors,
  type TensorDtype,
  type TensorRecord,
  trunkTensors,
  visionTensors
} from '../tensor-names.js'
import { type BoundArea, ExpertAreas } from './expert-areas.js'
import { expertSlot } from './expert-names.js'
import { TensorProblems } from './problems.js'
import type { Extent } from './types.js'

/** A tensor as a shard's header states it. */
export interface StoredTensor {
  readonly name: string
  readonly dtype: string
  readonly shape: readonly number[]
  /** from the start of the file */
  readonly fileOffset: number
  readonly byteLength: number
}

/** One shard: where it is and what its header lists. */
export interface Shard {
  /** absolute */
  readonly path: string
  readonly tensors: Iterable<StoredTensor>
}

/** Every record of a checkpoint, checked and located. */
export interface Binding {
  /** all tensors but the routed experts' */
  readonly extents: ReadonlyMap<string, Extent>
  /** by layer; null in the dense layer */
  readonly experts: readonly (BoundArea | null)[]
  /** codes of the names of an expert's tensors after its number, in the order of the table */
  readonly suffixes: readonly Uint8Array[]
  /** by shard */
  readonly tallies: readonly ShardTally[]
}

/** What one shard holds, by dtype. */
export interface ShardTally {
  readonly records: Record<TensorDtype, number>
  readonly bytes: Record<TensorDtype, number>
  /** file offset of the first U8 tensor, infinite when there is none */
  expertAreaStart: number
}

/**
 * Holds each record of each shard against the table of tensor names.
 * @throws ERR_K3_TENSORS listing what is missing, extra, of the wrong dtype or misshapen; ERR_K3_EXPERT_LAYOUT
 */
export function bindRecords(
  dir: string,
  config: K3Config,
  plan: readonly LayerPlan[],
  shards: readonly Shard[]
): Binding {
  const binder = new Binder(config, plan)
  shards.forEach(({ path, tensors }, file) => {
    binder.tallies.push(emptyTally())
    for (const tensor of tensors) binder.add(tensor, file, path)
  })
  binder.finish(dir)
  const paths = shards.map(({ path }) => path)
  return {
    extents: binder.extents,
    experts: plan.map(({ index, ffn }) => (ffn === 'moe' ? binder.areas.area(index, paths) : null)),
    suffixes: binder.areas.suffixes,
    tallies: binder.tallies
  }
}

class Binder {
  readonly extents = new Map<string, Extent>()
  readonly areas: ExpertAreas
  readonly tallies: ShardTally[] = []
  readonly #required: Map<string, TensorRecord>
  readonly #vision: Map<string, TensorRecord>
  readonly #refused = new Set<string>()
  readonly #problems = new TensorProblems()

  constructor(
    readonly config: K3Config,
    readonly plan: readonly LayerPlan[]
  ) {
    this.areas = new ExpertAreas(config)
    const { projector, tower } = visionTensors(config)
    const trunk = plan.flatMap((layer) => trunkTensors(config, layer))
    this.#required = byName([...trunk, ...modelTensors(config)])
    this.#vision = byName([...projector, ...tower])
  }

  add(tensor: StoredTensor, file: number, path: string): void {
    const slot = expertSlot(tensor.name, this.areas.suffixes)
    if (slot !== null && this.#hasExpert(slot.layer, slot.expert)) {
      if (this.#agrees(tensor, this.areas.record(slot.part), path)) this.#count(tensor, 'U8', file)
      this.areas.add(slot, file, tensor.fileOffset)
      return
    }
    const record = this.#required.get(tensor.name)
    const wanted = record === undefined ? this.#vision.get(tensor.name) : record
    if (wanted === undefined) {
      const have = `${tensor.dtype} [${tensor.shape}]`
      this.#problems.add({ kind: 'extra', tensor: tensor.name, file: path, have, need: 'no such tensor' })
    } else if (this.#agrees(tensor, wanted, path)) {
      const { fileOffset: offset, byteLength: bytes } = tensor
      this.#count(tensor, wanted.dtype, file)
      this.extents.set(tensor.name, { file, offset, bytes, dtype: wanted.dtype, shape: wanted.shape })
    } else {
      this.#refused.add(tensor.name)
    }
  }

  finish(dir: string): void {
    this.#addMissing(this.#required)
    for (const { index, ffn } of this.plan) if (ffn === 'moe') this.areas.addMissing(index, this.#problems)
    const hasVision = [...this.#vision.keys()].some((name) => this.extents.has(name))
    if (hasVision) this.#addMissing(this.#vision)
    this.#problems.throwIfAny(dir)
  }

  #count({ byteLength, fileOffset }: StoredTensor, dtype: TensorDtype, file: number): void {
    const tally = this.tallies[file]!
    tally.records[dtype] += 1
    tally.bytes[dtype] += byteLength
    if (dtype === 'U8' && fileOffset < tally.expertAreaStart) tally.expertAreaStart = fileOffset
  }

  #hasExpert(layer: number, expert: number): boolean {
    return this.plan[layer]?.ffn === 'moe' && expert < this.config.moe.expertCount
  }

  #agrees(tensor: StoredTensor, wanted: TensorRecord, file: string): boolean {
    const { name, dtype, shape } = tensor
    if (dtype !== wanted.dtype) {
      this.#problems.add({ kind: 'dtype', tensor: name, file, have: dtype, need: wanted.dtype })
      return false
    }
    if (!sameShape(shape, wanted.shape)) {
      const [have, need] = [`[${shape}]`, `[${wanted.shape}]`]
      this.#problems.add({ kind: 'shape', tensor: name, file, have, need })
      return false
    }
    return true
  }

  #addMissing(wanted: ReadonlyMap<string, TensorRecord>): void {
    for (const { name, dtype, shape } of wanted.values()) {
      if (this.extents.has(name) || this.#refused.has(name)) continue
      const need = `${dtype} [${shape}]`
      this.#problems.add({ kind: 'missing', tensor: name, file: null, have: 'missing', need })
    }
  }
}

const emptyTally = (): ShardTally => ({
  records: { F32: 0, BF16: 0, U8: 0 },
  bytes: { F32: 0, BF16: 0, U8: 0 },
  expertAreaStart: Number.POSITIVE_INFINITY
})

const byName = (records: readonly TensorRecord[]): Map<string, TensorRecord> =>
  new Map(records.map((record) => [record.name, record]))

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
