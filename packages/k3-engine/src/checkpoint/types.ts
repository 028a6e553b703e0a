import type { K3Config } from '../config.js'
import type { LayerPlan } from '../layer-plan.js'
import type { TensorDtype } from '../tensor-names.js'

/** Where one tensor lies: `file` indexes {@link Checkpoint.files}, `offset` and `bytes` are absolute, in bytes. */
export interface Extent {
  readonly file: number
  readonly offset: number
  readonly bytes: number
  readonly dtype: TensorDtype
  readonly shape: readonly number[]
}

/** Byte offsets of the six tensors of an expert from the start of its run; the same for all experts of a layer. */
export interface ExpertLayout {
  readonly w1Packed: number
  readonly w1Scale: number
  readonly w2Packed: number
  readonly w2Scale: number
  readonly w3Packed: number
  readonly w3Scale: number
}

/** The routed experts of one layer, each one contiguous run of `bytes` bytes in one file. */
export interface ExpertArea {
  readonly file: number
  readonly bytes: number
  readonly layout: ExpertLayout
  /** Absolute file offset of an expert's run. @throws RangeError when there is no such expert */
  base(expert: number): number
}

/** A checkpoint folder whose every record has been checked for name, dtype and shape. Holds no open file. */
export interface Checkpoint {
  readonly dir: string
  readonly config: K3Config
  readonly plan: readonly LayerPlan[]
  /** absolute paths of the shards */
  readonly files: readonly string[]
  /** what was noticed in the folder and is no reason to refuse it, one sentence each; worth showing */
  readonly notices: readonly string[]
  /** Any tensor by its full name, experts included. @throws RangeError when the checkpoint has no such tensor */
  extent(name: string): Extent
  /** @throws RangeError when the layer has no routed experts */
  experts(layer: number): ExpertArea
}
