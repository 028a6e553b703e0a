import { readdirSync, readFileSync } from 'node:fs'
import { type Geometry, geometryOf } from '@k3/synth'

/** What is measured: the widths of a model, and how long its inputs are. */
export interface BenchSizes {
  readonly geometry: Geometry
  /** Cached positions of the attention rows. */
  readonly positions: readonly number[]
  /** Tokens of the prefill rows. */
  readonly prefill: number
  /** Columns of the MXFP4 and of the bf16 products. */
  readonly expertColumns: readonly number[]
  readonly trunkColumns: readonly number[]
  /** The last cache of this machine, in bytes. */
  readonly cacheBytes: number
}

/** The released model on this machine. */
export const releasedSizes = (): BenchSizes => ({
  geometry: geometryOf('full'),
  positions: [1024, 8192, 32768],
  prefill: 64,
  expertColumns: [8, 32, 64],
  trunkColumns: [16, 64],
  cacheBytes: lastCacheBytes()
})

const UNKNOWN_CACHE_BYTES = 32 * 2 ** 20

/** Size of the largest cache Linux tells of; 32 MiB where it tells nothing. */
export const lastCacheBytes = (): number => {
  const dir = '/sys/devices/system/cpu/cpu0/cache'
  try {
    const sizes = readdirSync(dir)
      .filter((entry) => entry.startsWith('index'))
      .map((entry) => /^(\d+)K\s*$/.exec(readFileSync(`${dir}/${entry}/size`, 'utf8')))
      .map((match) => (match === null ? 0 : 1024 * Number(match[1])))
    return Math.max(...sizes) || UNKNOWN_CACHE_BYTES
  } catch {
    return UNKNOWN_CACHE_BYTES
  }
}
