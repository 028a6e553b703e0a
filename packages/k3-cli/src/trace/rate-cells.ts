import type { HitRate } from './hit-rates.js'

/** A rate or share, 0 to 1, in percent with one decimal place. */
export const percent = (rate: number): string => (100 * rate).toFixed(1).padStart(5)

/** Slots and GB of a size, as the first cells of its row. */
export const sizeCells = ({ slots, bytes }: Pick<HitRate, 'slots' | 'bytes'>): (string | number)[] => [
  slots,
  bytes === 0 ? '' : (bytes / 1e9).toFixed(bytes < 1e9 ? 6 : 1)
]

/** A rate as `--json` prints it. */
export const rateObject = ({ policy, slots, bytes, hits, misses, whole, later, layers }: HitRate) => ({
  policy,
  slots,
  bytes: bytes === 0 ? null : bytes,
  hits,
  misses,
  hit_rate: whole,
  hit_rate_after: later,
  layers: layers.map((layer) => ({ layer: layer.layer, hits: layer.hits, misses: layer.misses }))
})
