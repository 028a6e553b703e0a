import { K3Error } from './errors.js'

/** Where the always-active weights lie: what a plan decides and the weights are opened with. */
export interface TrunkPlacement {
  /**
   * `mmap`: the shards are mapped and their pages belong to the system. `resident`: every layer and the head are read
   * once and stay. `stream`: pinned layers are read once and stay, the others go through a ring of buffers, each of
   * which holds the largest layer with experts; the dense layer is cut into pieces that fit one. Embedding rows are read
   * one by one, except from a mapping.
   */
  readonly mode: 'resident' | 'mmap' | 'stream'
  /** Ascending; all layers when resident, none when mapped. */
  readonly pinnedLayers: readonly number[]
  /** Buffers of the ring, at least 2 when anything is streamed; 0 otherwise. */
  readonly ringLayers: number
  /** Rows of the head that are read together into a ring buffer; the vocabulary when the head stays in memory. */
  readonly headRows: number
}

/** What may be asked for; the rest is chosen. */
export interface TrunkOptions {
  readonly trunk?: TrunkPlacement['mode']
  readonly pinnedLayers?: readonly number[]
  readonly ringLayers?: number
}

const MODES = ['resident', 'mmap', 'stream']
/** One is computed with while the other is read. */
const FEWEST_BUFFERS = 2

/**
 * The placement that was asked for. `mostHeadRows`: rows of the head that fit a ring buffer.
 * @throws ERR_K3_OPTION for a mode that does not exist, a layer that is not there, a ring that is too small, or pinned
 * layers and a ring without streaming
 */
export const choosePlacement = (
  { trunk: mode = 'mmap', pinnedLayers, ringLayers }: TrunkOptions,
  { layerCount, vocabSize, mostHeadRows }: { layerCount: number; vocabSize: number; mostHeadRows: number }
): TrunkPlacement => {
  if (!MODES.includes(mode)) throw refuse('trunk', MODES.join(', '), mode)
  if (mode !== 'stream') {
    const given = pinnedLayers === undefined ? 'ringLayers' : 'pinnedLayers'
    if (pinnedLayers !== undefined || ringLayers !== undefined)
      throw refuse(given, "absent unless trunk is 'stream'", mode)
    const all = Array.from({ length: layerCount }, (_, layer) => layer)
    return { mode, pinnedLayers: mode === 'mmap' ? [] : all, ringLayers: 0, headRows: vocabSize }
  }
  const pinned = pinnedLayers === undefined ? [] : [...new Set(pinnedLayers)].sort((a, b) => a - b)
  const stranger = pinned.find((layer) => !(Number.isSafeInteger(layer) && layer >= 0 && layer < layerCount))
  if (stranger !== undefined) throw refuse('pinnedLayers', `layers in 0 … ${layerCount - 1}`, stranger)
  const buffers = ringLayers === undefined ? FEWEST_BUFFERS : ringLayers
  if (!Number.isSafeInteger(buffers) || buffers < FEWEST_BUFFERS)
    throw refuse('ringLayers', `a whole number of at least ${FEWEST_BUFFERS}`, buffers)
  // a head that is streamed is streamed in at least two blocks: all rows at once means that it stays
  const headRows = Math.min(mostHeadRows, Math.ceil(vocabSize / 2))
  return { mode, pinnedLayers: pinned, ringLayers: buffers, headRows }
}

const refuse = (field: string, need: string, have: unknown) =>
  new K3Error('ERR_K3_OPTION', `${field} must be ${need}, got ${String(have)}`, { field, have, need })
