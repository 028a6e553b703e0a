import type { Reader } from '@k3/uring'
import type { Checkpoint } from './checkpoint/types.js'
import type { NativeChoice } from './layer-parts.js'
import type { LayerPlan } from './layer-plan.js'
import { MappedWeights } from './mapped-weights.js'
import { StreamedWeights } from './streamed-weights.js'
import type { Trunk } from './trunk.js'
import type { TrunkPlacement } from './trunk-placement.js'
import { trunkSegments } from './trunk-segments.js'

/** What a trunk is opened with besides its placement. */
export interface TrunkParts {
  readonly checkpoint: Checkpoint
  readonly plan: readonly LayerPlan[]
  readonly reader: Reader
  readonly native: NativeChoice
  readonly chunkTokens: number
  /** NUMA nodes its memory is spread over; none: it lies where it is touched first. */
  readonly nodes?: readonly number[]
}

/** Opens the always-active weights where the placement wants them. */
export const openTrunk = (
  placement: TrunkPlacement,
  { checkpoint, plan, reader, native, chunkTokens, nodes = [] }: TrunkParts
): Trunk => {
  if (placement.mode === 'mmap') return new MappedWeights(checkpoint, native)
  const segments = trunkSegments(checkpoint, plan, placement)
  const { ringLayers: buffers } = placement
  return new StreamedWeights({ checkpoint, segments, buffers, reader, native, chunkTokens, nodes })
}
