import type { ExpertBatch, ExpertSpec } from '../src/index.js'
import { randomMatrix, randomNumbers } from './arrays.js'

export const betas = { beta: 4, linearBeta: 25 }

/** Experts of random weights at odd places of one typed array, with gaps, their tensors in the order of the files. */
export const randomExperts = (count: number, latent: number, inner: number, seed: number) => {
  const codes = (latent * inner) / 2
  const scales = codes / 16
  const layout = {
    w1Packed: 1,
    w1Scale: 1 + codes,
    w2Packed: 8 + codes + scales,
    w2Scale: 8 + 2 * codes + scales,
    w3Packed: 8 + 2 * (codes + scales),
    w3Scale: 11 + 3 * codes + 2 * scales
  }
  const step = 40 + 3 * (codes + scales)
  const region = new Uint8Array(count * step).fill(255)
  const bases = Float64Array.from({ length: count }, (_, e) => e * step)
  for (let e = 0; e < count; e++) {
    const w1 = randomMatrix(inner, latent, seed + 10 * e)
    const w2 = randomMatrix(latent, inner, seed + 10 * e + 3)
    const w3 = randomMatrix(inner, latent, seed + 10 * e + 6)
    const put = (offset: number, bytes: Uint8Array) => region.set(bytes, e * step + offset)
    put(layout.w1Packed, w1.packed)
    put(layout.w1Scale, w1.scales)
    put(layout.w2Packed, w2.packed)
    put(layout.w2Scale, w2.scales)
    put(layout.w3Packed, w3.packed)
    put(layout.w3Scale, w3.scales)
  }
  const spec: ExpertSpec = { latent, inner, topK: 1, ...betas, layout }
  return { spec, region, bases }
}

/** One expert whose six tensors follow one another. */
export const packedExpert = (tensors: readonly Uint8Array[]) => {
  const offsets = tensors.map((_, i) => tensors.slice(0, i).reduce((sum, t) => sum + t.length, 0))
  const [w1Packed, w1Scale, w2Packed, w2Scale, w3Packed, w3Scale] = offsets as [
    number,
    number,
    number,
    number,
    number,
    number
  ]
  const region = Uint8Array.from(tensors.flatMap((tensor) => [...tensor]))
  return { region, layout: { w1Packed, w1Scale, w2Packed, w2Scale, w3Packed, w3Scale } }
}

/** A batch whose expert e has pairCounts[e] pairs, over `rows` tokens; arrays longer than needed. */
export const batchOf = (
  bases: Float64Array,
  pairCounts: readonly number[],
  rows: number,
  first = 0
): ExpertBatch => {
  const starts = new Int32Array(pairCounts.length + 3).fill(-1)
  starts[0] = first
  for (const [e, pairs] of pairCounts.entries()) starts[e + 1] = starts[e]! + pairs
  const end = starts[pairCounts.length]!
  const tokens = Int32Array.from({ length: end + 2 }, (_, p) =>
    p < first || p >= end ? -1 : (p * 7 + 3) % rows
  )
  return { count: pairCounts.length, bases, starts, tokens }
}

/** z as an expert may see it: [rows, latent]. */
export const latents = (rows: number, latent: number, seed: number): Float32Array =>
  randomNumbers(rows * latent, seed).map((value) => 2 * value)
