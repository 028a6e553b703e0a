import type { Rule } from './rules.js'

const M64 = (1n << 64n) - 1n

/** FNV-1a of a name's UTF-8 bytes, 64 bits. */
export function fnv1a64(name: string): bigint {
  let hash = 0xcbf29ce484222325n
  for (const byte of new TextEncoder().encode(name)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & M64
  return hash
}

/** The finaliser of SplitMix64. */
export function mix64(z: bigint): bigint {
  let mixed = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & M64
  mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & M64
  return mixed ^ (mixed >> 31n)
}

/** The key of a tensor's stream of words. */
export const tensorKey = (seed: bigint, name: string): bigint =>
  mix64((fnv1a64(name) + seed * 0x9e3779b97f4a7c15n) & M64)

/** One tensor: its key in two halves, and its rule in numbers. */
export interface Stream {
  readonly k0: number
  readonly k1: number
  /** 0 raw, 1 scale, 2 affine stored as bf16, 3 affine stored as f32 */
  readonly kind: number
  /** affine: the constant term; scale: the lowest byte */
  readonly offset: number
  readonly slope: number
  /** affine: the power of two */
  readonly unit: number
  /** f32 elements from here on are +0 */
  readonly live: number
}

/** Binds a rule to a seed and a name. `dtype` decides how affine values are stored. */
export function streamOf(seed: bigint, name: string, dtype: 'F32' | 'BF16' | 'U8', rule: Rule): Stream {
  const key = tensorKey(seed, name)
  const halves = { k0: Number(key & 0xffffffffn), k1: Number(key >> 32n) }
  if (rule.kind === 'raw') return { ...halves, kind: 0, offset: 0, slope: 0, unit: 0, live: 0 }
  if (rule.kind === 'scale') return { ...halves, kind: 1, offset: rule.low, slope: 0, unit: 0, live: 0 }
  const { offset, slope, exponent, live } = rule
  return { ...halves, kind: dtype === 'BF16' ? 2 : 3, offset, slope, unit: 2 ** exponent, live }
}
