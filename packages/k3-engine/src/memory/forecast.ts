import type { PolicyName } from '@k3/moe-cache'
import type { Division } from './divide.js'
import { expectedHitRate } from './hit-rate.js'
import type { ModelSizes } from './model-sizes.js'

/** How fast a machine is. Figures in GB/s, 10^9 bytes. */
export interface MachineSpeed {
  /** Large reads past the page cache. */
  readonly diskGBs: number
  /** Reads from memory by all threads. */
  readonly memoryGBs: number
  /** Weights one thread multiplies: bf16 of the trunk, MXFP4 of the experts. */
  readonly linearGBs: number
  readonly expertGBs: number
}

/** Stated where nothing was measured: a common NVMe drive, and what one Zen 4 core does with the kernels here. */
export const ASSUMED_SPEED: MachineSpeed = { diskGBs: 2, memoryGBs: 50, linearGBs: 13, expertGBs: 6 }

/** What one token of decoding costs. */
export interface Forecast {
  /** Bytes read from the disk. */
  readonly trunkReadBytes: number
  readonly headReadBytes: number
  readonly expertReadBytes: number
  /** Expected share of experts found in the cache, and the policy it is expected of. */
  readonly hitRate: number
  readonly policy: PolicyName
  readonly diskSeconds: number
  readonly memorySeconds: number
  readonly computeSeconds: number
  /** Reads run under the computation, so the slowest of the three is what a token takes. */
  readonly secondsPerToken: number
  readonly bindsOn: 'disk' | 'memory' | 'compute'
}

/** Predicts a token from the bytes that a division leaves to be moved. */
export const forecast = (
  sizes: ModelSizes,
  division: Division,
  speed: MachineSpeed,
  { threads, policy }: { readonly threads: number; readonly policy: PolicyName }
): Forecast => {
  const layers = sizes.layers.reduce((sum, bytes) => sum + bytes, 0)
  const hitRate = expectedHitRate(policy, division.slots, sizes)
  const experts = sizes.tokenExperts * sizes.expert
  const trunkReadBytes = layers - division.pinnedBytes
  const headReadBytes = division.trunk.headRows === sizes.vocab ? 0 : sizes.head
  const expertReadBytes = Math.round((1 - hitRate) * experts)
  const read = trunkReadBytes + headReadBytes + expertReadBytes
  const linear = layers + sizes.head
  const seconds = {
    disk: read / speed.diskGBs / 1e9,
    // what came from the disk passed through memory once already
    memory: (linear + experts + read) / speed.memoryGBs / 1e9,
    compute: (linear / speed.linearGBs + experts / speed.expertGBs) / threads / 1e9
  }
  const secondsPerToken = Math.max(...Object.values(seconds))
  return {
    trunkReadBytes,
    headReadBytes,
    expertReadBytes,
    hitRate,
    policy,
    diskSeconds: seconds.disk,
    memorySeconds: seconds.memory,
    computeSeconds: seconds.compute,
    secondsPerToken,
    bindsOn: (['disk', 'memory', 'compute'] as const).find((bound) => seconds[bound] === secondsPerToken)!
  }
}
