import type { ConfigSection } from './config-section.js'

/** 0-based layer numbers by kind of attention, each ascending. */
export interface LayerLists {
  readonly kda: readonly number[]
  readonly mla: readonly number[]
}

/**
 * Turns the two 1-based lists of `linear_attn_config` into 0-based ones that cover every layer exactly once.
 * @throws ERR_K3_CONFIG_LAYER_RANGE, ERR_K3_CONFIG_LAYER_REPEATED, ERR_K3_CONFIG_LAYER_OVERLAP,
 * ERR_K3_CONFIG_LAYER_UNLISTED
 */
export function readLayerLists(linear: ConfigSection, layerCount: number): LayerLists {
  const kda = readList(linear, 'kda_layers', layerCount)
  const mla = readList(linear, 'full_attn_layers', layerCount)
  const both = mla.filter((number) => kda.includes(number))
  if (both.length > 0) {
    const need = 'only layers that kda_layers does not name'
    linear.refuse(
      'ERR_K3_CONFIG_LAYER_OVERLAP',
      'full_attn_layers',
      need,
      `layer ${both.join(', ')} is in both`
    )
  }
  const listed = new Set([...kda, ...mla])
  const absent = Array.from({ length: layerCount }, (_, i) => i + 1).filter((number) => !listed.has(number))
  if (absent.length > 0) {
    const need = `the rest of layers 1 to ${layerCount}`
    const why = `layer ${absent.join(', ')} is in neither list; numbers start at 1`
    linear.refuse('ERR_K3_CONFIG_LAYER_UNLISTED', 'kda_layers', need, why)
  }
  return { kda: kda.map((number) => number - 1), mla: mla.map((number) => number - 1) }
}

function readList(linear: ConfigSection, name: string, layerCount: number): number[] {
  const numbers = linear.integers(name, { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER })
  const outside = numbers.find((number) => number < 1 || number > layerCount)
  if (outside !== undefined) {
    const why = `it names layer ${outside}; numbers start at 1`
    linear.refuse('ERR_K3_CONFIG_LAYER_RANGE', name, `layer numbers from 1 to ${layerCount}`, why)
  }
  const repeated = numbers.find((number, i) => numbers.indexOf(number) !== i)
  if (repeated !== undefined) {
    linear.refuse('ERR_K3_CONFIG_LAYER_REPEATED', name, 'each layer once', `layer ${repeated} occurs twice`)
  }
  return numbers.sort((a, b) => a - b)
}
