/** Position of an expert's tensor: `part` indexes the rows of `expertTensors`. */
export interface ExpertSlot {
  readonly layer: number
  readonly expert: number
  readonly part: number
}

const BEFORE_LAYER = 'language_model.model.layers.'
const BEFORE_EXPERT = '.block_sparse_moe.experts.'

/**
 * Recognises the name of an expert's tensor without a table of the 494,592 of them; null for any other name, other
 * spellings of a number (`01`) included.
 */
export function expertSlot(name: string, parts: ReadonlyMap<string, number>): ExpertSlot | null {
  if (!name.startsWith(BEFORE_LAYER)) return null
  const layerEnd = name.indexOf('.', BEFORE_LAYER.length)
  if (layerEnd < 0 || !name.startsWith(BEFORE_EXPERT, layerEnd)) return null
  const expertStart = layerEnd + BEFORE_EXPERT.length
  const expertEnd = name.indexOf('.', expertStart)
  const part = parts.get(name.slice(expertEnd + 1))
  if (expertEnd < 0 || part === undefined) return null
  const layer = decimal(name, BEFORE_LAYER.length, layerEnd)
  const expert = decimal(name, expertStart, expertEnd)
  return layer < 0 || expert < 0 ? null : { layer, expert, part }
}

/** The number written canonically in name[from, to), or -1. */
function decimal(name: string, from: number, to: number): number {
  if (to === from || to - from > 9 || (name[from] === '0' && to - from > 1)) return -1
  let value = 0
  for (let i = from; i < to; i++) {
    const digit = name.charCodeAt(i) - 48
    if (digit < 0 || digit > 9) return -1
    value = 10 * value + digit
  }
  return value
}
