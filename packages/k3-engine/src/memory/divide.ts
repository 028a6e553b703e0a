import type { PolicyName } from '@k3/moe-cache'
import type { TrunkPlacement } from '../trunk-placement.js'
import { expectedHitRate } from './hit-rate.js'
import type { ModelSizes } from './model-sizes.js'

/** How memory is divided between the trunk and the experts. Sizes in bytes. */
export interface Division {
  readonly trunk: TrunkPlacement
  readonly slots: number
  readonly pinnedBytes: number
  readonly ringBytes: number
  /** Head and embedding, as far as they stay in memory. */
  readonly tableBytes: number
}

/** What is asked for; null leaves it to the division. */
export interface DivisionWish {
  readonly trunk: TrunkPlacement['mode'] | TrunkPlacement | null
  readonly slots: number | null
  readonly policy: PolicyName
}

// One buffer is computed with while the other is read; a third would pin nothing and a pinned layer is read never.
const RING_LAYERS = 2

/** The least that holds the weights as wished: any less cannot run. */
export const smallestDivision = (sizes: ModelSizes, wish: DivisionWish): number =>
  Math.min(...waysOf(sizes, wish).map((way) => way.fixed)) + leastSlots(sizes, wish) * sizes.slot

/**
 * The division of `bytes` that leaves the fewest bytes to be read for a token. A byte of pinned trunk or head saves one
 * byte of every token; a byte of expert slots saves what its expert is likely to be found there, which is less. So the
 * trunk comes first, and the slots get what no whole layer fits into.
 */
export const divide = (sizes: ModelSizes, wish: DivisionWish, bytes: number): Division => {
  let best: { division: Division; saved: number } | null = null
  for (const way of waysOf(sizes, wish)) {
    const free = bytes - way.fixed - leastSlots(sizes, wish) * sizes.slot
    if (free < 0) continue
    for (const pinned of way.isRing ? pinnings(sizes, free) : [NOTHING]) {
      const room = free - pinned.bytes + leastSlots(sizes, wish) * sizes.slot
      const slots = wish.slots === null ? Math.min(sizes.experts, slotsIn(room, sizes)) : wish.slots
      const hits = expectedHitRate(wish.policy, slots, sizes) * sizes.tokenExperts * sizes.expert
      const saved = way.saved + pinned.bytes + hits
      if (best !== null && saved <= best.saved) continue
      best = { division: divisionOf(sizes, way, pinned, slots), saved }
    }
  }
  return best!.division
}

const slotsIn = (bytes: number, { slot, experts }: ModelSizes): number =>
  experts === 0 ? 0 : Math.floor(bytes / slot)

const leastSlots = ({ topK }: ModelSizes, { slots }: DivisionWish): number => (slots === null ? topK : slots)

/** A mode of the trunk: what it takes before anything is pinned, and what it saves of a token's reads. */
interface Way {
  readonly mode: TrunkPlacement['mode']
  readonly fixed: number
  readonly saved: number
  /** Whether layers are pinned as room allows. */
  readonly isRing: boolean
  /** The placement that was asked for in so many words. */
  readonly given: TrunkPlacement | null
}

const waysOf = (sizes: ModelSizes, { trunk: asked }: DivisionWish): readonly Way[] => {
  if (asked !== null && typeof asked !== 'string') return [givenWay(sizes, asked)]
  const trunk = sizes.layers.reduce((sum, bytes) => sum + bytes, 0)
  const everything = trunk + sizes.head
  const ways: Way[] = [
    { mode: 'mmap', fixed: everything + sizes.embedding, saved: everything, isRing: false, given: null },
    { mode: 'resident', fixed: everything, saved: everything, isRing: false, given: null }
  ]
  const ring = RING_LAYERS * sizes.ringBuffer
  ways.push({ mode: 'stream', fixed: ring, saved: 0, isRing: true, given: null })
  return asked === null ? ways : ways.filter(({ mode }) => mode === asked)
}

const givenWay = (sizes: ModelSizes, given: TrunkPlacement): Way => {
  const { pinnedBytes, ringBytes, tableBytes } = bytesOf(sizes, given)
  const saved = pinnedBytes + (given.headRows === sizes.vocab ? sizes.head : 0)
  return { mode: given.mode, fixed: pinnedBytes + ringBytes + tableBytes, saved, isRing: false, given }
}

/** Layers of equal size, and how many of them are pinned. */
interface Pinned {
  readonly counts: readonly { readonly indices: readonly number[]; readonly count: number }[]
  readonly head: boolean
  readonly bytes: number
}

const NOTHING: Pinned = { counts: [], head: false, bytes: 0 }

/** Every number of layers of each size that fits into `free` bytes, with and without the head. */
function* pinnings(sizes: ModelSizes, free: number): Generator<Pinned> {
  const bySize = new Map<number, number[]>()
  sizes.layers.forEach((bytes, index) => {
    const known = bySize.get(bytes)
    if (known === undefined) bySize.set(bytes, [index])
    else known.push(index)
  })
  const classes = [...bySize].map(([bytes, indices]) => ({ bytes, indices }))
  function* counted(at: number, left: number): Generator<{ indices: readonly number[]; count: number }[]> {
    const kind = classes[at]
    if (kind === undefined) {
      yield []
      return
    }
    const most = Math.min(kind.indices.length, Math.floor(left / kind.bytes))
    for (let count = most; count >= 0; count--) {
      for (const rest of counted(at + 1, left - count * kind.bytes)) {
        yield [{ indices: kind.indices, count }, ...rest]
      }
    }
  }
  for (const head of [true, false]) {
    const left = free - (head ? sizes.head : 0)
    if (left < 0) continue
    for (const counts of counted(0, left)) {
      const layers = counts.reduce((sum, { count, indices }) => sum + count * sizes.layers[indices[0]!]!, 0)
      yield { counts, head, bytes: layers + (head ? sizes.head : 0) }
    }
  }
}

const divisionOf = (sizes: ModelSizes, way: Way, pinned: Pinned, slots: number): Division => {
  const trunk = way.given === null ? placementOf(sizes, way, pinned) : way.given
  return { trunk, slots, ...bytesOf(sizes, trunk) }
}

const placementOf = (sizes: ModelSizes, { mode, isRing }: Way, { counts, head }: Pinned): TrunkPlacement => {
  const { layers, vocab } = sizes
  if (!isRing) {
    return { mode, pinnedLayers: mode === 'mmap' ? [] : [...layers.keys()], ringLayers: 0, headRows: vocab }
  }
  const pinnedLayers = counts.flatMap(({ indices, count }) => spread(indices, count)).sort((a, b) => a - b)
  const streamsNothing = head && pinnedLayers.length === layers.length
  return {
    mode,
    pinnedLayers,
    ringLayers: streamsNothing ? 0 : RING_LAYERS,
    headRows: head ? vocab : sizes.mostHeadRows
  }
}

const bytesOf = (sizes: ModelSizes, { mode, pinnedLayers, ringLayers, headRows }: TrunkPlacement) => {
  const { layers, head, embedding, vocab } = sizes
  const held = mode === 'mmap' ? [...layers.keys()] : pinnedLayers
  return {
    pinnedBytes: held.reduce((sum, index) => sum + layers[index]!, 0),
    ringBytes: ringLayers * sizes.ringBuffer,
    tableBytes: (headRows === vocab ? head : 0) + (mode === 'mmap' ? embedding : 0)
  }
}

/** `count` of the layers, evenly spread, so that the disk is busy all along a token. */
const spread = (indices: readonly number[], count: number): number[] =>
  indices.filter(
    (_, i) => Math.floor(((i + 1) * count) / indices.length) > Math.floor((i * count) / indices.length)
  )
