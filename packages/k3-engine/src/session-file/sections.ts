import { KdaState } from '@k3/kda'
import { MlaCache } from '@k3/mla'
import { K3Error } from '../errors.js'
import type { SequenceState } from '../states.js'

/** Kinds of sections; the numbers are part of the file format. */
export const SECTION = { ids: 1, logits: 2, kdaRecurrence: 3, kdaTails: 4, mlaRows: 5 } as const

/** The layer number of a section that belongs to no layer. */
export const NO_LAYER = 0xffffffff

/** One array of a state and its place in the file. The bytes are the array's own, not a copy. */
export interface Section {
  readonly kind: number
  readonly layer: number
  readonly bytes: Uint8Array
}

/** The arrays of a state, in file order. @throws ERR_K3_SESSION_STATE when a layer keeps a state of its own making */
export const sectionsOf = (state: SequenceState): Section[] => {
  const logits = state.logits === null ? new Float32Array(0) : state.logits
  return [
    section(SECTION.ids, NO_LAYER, Uint32Array.from(state.ids)),
    section(SECTION.logits, NO_LAYER, logits),
    ...state.layers.flatMap((layer, index) => {
      if (layer instanceof KdaState) {
        return [
          section(SECTION.kdaRecurrence, index, layer.recurrence),
          section(SECTION.kdaTails, index, layer.tails)
        ]
      }
      if (layer instanceof MlaCache) {
        return [section(SECTION.mlaRows, index, layer.rows.subarray(0, layer.length * layer.rowLength))]
      }
      throw unknownState(index)
    })
  ]
}

/** A state of `tokens` tokens whose arrays are to be filled through its sections. `empty` gives up its arrays. */
export const blankSections = (empty: SequenceState, tokens: number, vocab: number) => {
  const ids = new Uint32Array(tokens)
  const logits = new Float32Array(tokens === 0 ? 0 : vocab)
  empty.layers.forEach((layer, index) => {
    if (!(layer instanceof MlaCache)) return
    const { rowLength } = layer
    empty.layers[index] = new MlaCache(rowLength, new Float32Array(tokens * rowLength), tokens)
  })
  const [, , ...layers] = sectionsOf(empty)
  const sections = [section(SECTION.ids, NO_LAYER, ids), section(SECTION.logits, NO_LAYER, logits), ...layers]
  const finish = (): SequenceState => {
    for (const id of ids) empty.ids.push(id)
    empty.logits = tokens === 0 ? null : logits
    return empty
  }
  return { ids, sections, finish }
}

const section = (kind: number, layer: number, array: Float32Array | Uint32Array): Section => ({
  kind,
  layer,
  bytes: new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
})

const unknownState = (layer: number) => {
  const message = `layer ${layer} is a replacement with a state of its own; such sessions cannot be saved`
  return new K3Error('ERR_K3_SESSION_STATE', message, { have: layer, need: 'KdaState or MlaCache' })
}
