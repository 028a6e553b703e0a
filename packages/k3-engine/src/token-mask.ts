import { settingOutOfRange } from './sampler-settings.js'

/**
 * The ids below `vocab` whose bits are set, ascending, in the first places of `list`, u32 [vocab]: whoever goes through
 * them takes as many steps as there are, not as there could be.
 * @throws ERR_K3_SAMPLER when the mask has a word too few
 */
export const idsOfMask = (mask: Uint32Array, vocab: number, list: Uint32Array): Uint32Array => {
  const words = Math.ceil(vocab / 32)
  if (mask.length < words) {
    throw settingOutOfRange('allowed', `a mask of at least ${words} words`, mask.length)
  }
  let count = 0
  for (let i = 0; i < words; i++) {
    const inside = i === words - 1 && vocab % 32 !== 0 ? 2 ** (vocab % 32) - 1 : -1
    for (let bits = mask[i]! & inside; bits !== 0; bits &= bits - 1) {
      list[count++] = (i << 5) | (31 - Math.clz32(bits & -bits))
    }
  }
  return list.subarray(0, count)
}
