import { type Region, weightBytes } from '@k3/native-kit'
import { rangeError } from './errors.js'
import { groupSize } from './shape.js'

/**
 * Byte offsets of the six tensors of an expert from its base. w1 (gate), w3 (up): [inner, latent]; w2 (down):
 * [latent, inner]; packed U8 [rows, cols / 2], scale U8 [rows, cols / 32].
 */
export interface ExpertLayout {
  readonly w1Packed: number
  readonly w1Scale: number
  readonly w2Packed: number
  readonly w2Scale: number
  readonly w3Packed: number
  readonly w3Scale: number
}

/** One scale tensor of an expert: its offset from the base, its rows, its groups a row. */
export interface ScaleTensor {
  readonly name: string
  readonly offset: number
  readonly rows: number
  readonly groups: number
}

/** The scale tensors of an expert, w1 first. */
export const scaleTensors = (layout: ExpertLayout, latent: number, inner: number): ScaleTensor[] => {
  const wide = { rows: inner, groups: latent / groupSize }
  return [
    { name: 'w1', offset: layout.w1Scale, ...wide },
    { name: 'w2', offset: layout.w2Scale, rows: latent, groups: inner / groupSize },
    { name: 'w3', offset: layout.w3Scale, ...wide }
  ]
}

/**
 * Bytes from an expert's base to the end of its last tensor, after checking that no two tensors overlap.
 * @throws RangeError (ERR_OUT_OF_RANGE)
 */
export const expertBytes = (layout: ExpertLayout, latent: number, inner: number): number => {
  const codeBytes = (latent * inner) / 2
  const tensors = Object.entries(layout) as [keyof ExpertLayout, number][]
  const extents = tensors.map(([name, begin]) => {
    if (!Number.isSafeInteger(begin) || begin < 0)
      throw rangeError(`layout.${name} must be a byte offset, got ${begin}`)
    const bytes = name.endsWith('Packed') ? codeBytes : (latent * inner) / groupSize
    return { name, begin, end: begin + bytes }
  })
  extents.sort((a, b) => a.begin - b.begin)
  for (let i = 1; i < extents.length; i++) {
    const [before, after] = [extents[i - 1]!, extents[i]!]
    if (before.end > after.begin) {
      throw rangeError(
        `layout: ${before.name} ends at byte ${before.end}, ${after.name} begins at ${after.begin}`
      )
    }
  }
  return extents[extents.length - 1]!.end
}

/**
 * The region as C++ takes it, its size, and a check of an expert's base.
 * @throws RangeError (ERR_OUT_OF_RANGE) when an expert does not fit
 */
export const bindRegion = (region: Region | ArrayBufferView, expert: number) => {
  const source = weightBytes('region', ArrayBuffer.isView(region) ? region : { region, offset: 0 }, expert)
  const checkBase = (base: number): void => {
    // asked anew each time: an array whose buffer was transferred away has no bytes left
    const bytes = ArrayBuffer.isView(region) ? region.byteLength : region.bytes
    if (Number.isSafeInteger(base) && base >= 0 && base + expert <= bytes) return
    throw rangeError(`an expert at byte ${base} needs ${expert} bytes; the region has ${bytes}`)
  }
  return { source, checkBase }
}
