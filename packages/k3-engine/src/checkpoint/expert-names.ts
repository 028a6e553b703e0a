/** Position of an expert's tensor: `part` indexes the rows of `expertTensors`. */
export interface ExpertSlot {
  readonly layer: number
  readonly expert: number
  readonly part: number
}

/** A name's character codes: comparing with them costs half of comparing with a string. */
export const codes = (text: string): Uint8Array => new TextEncoder().encode(text)

const BEFORE_LAYER = codes('language_model.model.layers.')
const BEFORE_EXPERT = codes('.block_sparse_moe.experts.')

/**
 * Recognises the name of an expert's tensor without a table of the 494,592 of them; null for any other name, other
 * spellings of a number (`01`) included. `suffixes`: codes of the names of `expertTensors`.
 */
export function expertSlot(name: string, suffixes: readonly Uint8Array[]): ExpertSlot | null {
  if (!standsAt(name, 0, BEFORE_LAYER)) return null
  const layerEnd = decimalEnd(name, BEFORE_LAYER.length)
  if (!standsAt(name, layerEnd, BEFORE_EXPERT)) return null
  const expertStart = layerEnd + BEFORE_EXPERT.length
  const expertEnd = decimalEnd(name, expertStart)
  const layer = decimal(name, BEFORE_LAYER.length, layerEnd)
  const expert = decimal(name, expertStart, expertEnd)
  if (layer < 0 || expert < 0 || name[expertEnd] !== '.') return null
  for (let part = 0; part < suffixes.length; part++) {
    const suffix = suffixes[part]!
    if (name.length === expertEnd + 1 + suffix.length && standsAt(name, expertEnd + 1, suffix)) {
      return { layer, expert, part }
    }
  }
  return null
}

/** `name.startsWith(text, at)`, whose built-in form takes a second for all names of a checkpoint. */
function standsAt(name: string, at: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (name.charCodeAt(at + i) !== text[i]) return false
  return true
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

function decimalEnd(name: string, from: number): number {
  let end = from
  while (isDigit(name.charCodeAt(end))) end++
  return end
}

/** The number written canonically in name[from, to), or -1. */
function decimal(name: string, from: number, to: number): number {
  if (to === from || to - from > 9 || (name[from] === '0' && to - from > 1)) return -1
  let value = 0
  for (let i = from; i < to; i++) value = 10 * value + name.charCodeAt(i) - 48
  return value
}
