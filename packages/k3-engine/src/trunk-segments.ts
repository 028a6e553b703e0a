import { paddedBytes } from '@k3/uring'
import type { Checkpoint, Extent } from './checkpoint/types.js'
import { K3Error } from './errors.js'
import type { LayerPlan } from './layer-plan.js'
import { layerTensorName, trunkTensors } from './tensor-names.js'
import type { TrunkPlacement } from './trunk-placement.js'

/** Rows [firstRow, firstRow + rows) of a matrix, from byte `at` of its segment on. */
export interface TrunkPiece {
  readonly name: string
  readonly firstRow: number
  readonly rows: number
  readonly at: number
}

/** One contiguous run of a shard, and the page of the segment its read is aimed at. */
export interface TrunkRun {
  readonly file: number
  readonly offset: number
  readonly length: number
  readonly at: number
}

/** Matrices that are read together and lie together: a layer, a part of a large one, or rows of the head. */
export interface TrunkSegment {
  /** null: the head */
  readonly layer: number | null
  readonly isPinned: boolean
  /** whole pages */
  readonly bytes: number
  /** Segments of one group lie in one buffer of the ring together. */
  readonly group: number
  /** Page of its buffer, in bytes, it begins at: 0 for the first of a group. */
  readonly base: number
  readonly runs: readonly TrunkRun[]
  readonly pieces: readonly TrunkPiece[]
}

/** Bytes of memory the matrices of a placement take. */
export interface TrunkMemory {
  readonly pinnedBytes: number
  readonly ringBytes: number
  /** of one buffer of the ring */
  readonly bufferBytes: number
}

type Shards = Pick<Checkpoint, 'config' | 'extent'>
type UnplacedSegment = Omit<TrunkSegment, 'group' | 'base'>
type Rows = Pick<TrunkPiece, 'name' | 'firstRow' | 'rows'>

/** Name of the output matrix. */
export const HEAD = 'language_model.lm_head.weight'
const PAGE_BYTES = 4096
// Between the matrices of a layer lie its norms, of a few rows; reading them too keeps its run in one piece.
const GAP_BYTES = 256 * 1024

/**
 * Every matrix of these layers and the head, in the order a token needs them. A streamed layer that is larger than a ring
 * buffer is the dense one: its attention comes first, then blocks of rows of gate and up, then of down. Streamed segments
 * that follow each other and fit one buffer together share it.
 * @throws ERR_K3_OPTION when rows of the head that are read together do not fit a buffer
 */
export const trunkSegments = (
  shards: Shards,
  plan: readonly LayerPlan[],
  placement: TrunkPlacement
): readonly TrunkSegment[] => {
  const bufferBytes = ringBufferBytes(shards, plan)
  const layers = plan.flatMap((layer) => layerSegments(shards, layer, placement, bufferBytes))
  const { headRows } = placement
  const { vocabSize } = shards.config
  const most = mostHeadRows(shards, plan)
  if (headRows < vocabSize && headRows > most) {
    const message = `${headRows} rows of the head do not fit a buffer of ${bufferBytes} bytes, at most ${most} do`
    throw new K3Error('ERR_K3_OPTION', message, { field: 'headRows', have: headRows, need: most })
  }
  const head = rowBlocks(vocabSize, headRows).map((block) =>
    segmentOf(shards, null, headRows >= vocabSize, [{ name: HEAD, ...block }])
  )
  return sharingBuffers([...layers, ...head], bufferBytes)
}

/** What a placement costs. */
export const trunkMemory = (
  shards: Shards,
  plan: readonly LayerPlan[],
  placement: TrunkPlacement
): TrunkMemory => {
  const bufferBytes = ringBufferBytes(shards, plan)
  if (placement.mode === 'mmap') return { pinnedBytes: 0, ringBytes: 0, bufferBytes }
  const pinned = trunkSegments(shards, plan, placement).filter(({ isPinned }) => isPinned)
  const pinnedBytes = pinned.reduce((sum, { bytes }) => sum + bytes, 0)
  return { pinnedBytes, ringBytes: placement.ringLayers * bufferBytes, bufferBytes }
}

/** Rows of the head that fit a ring buffer. */
export const mostHeadRows = (shards: Shards, plan: readonly LayerPlan[]): number =>
  rowsThatFit(ringBufferBytes(shards, plan), 1, shards.config.hiddenSize)

/** The largest layer with experts; never less than the attention of the dense layer and a row of each of its matrices. */
const ringBufferBytes = (shards: Shards, plan: readonly LayerPlan[]): number => {
  const { hiddenSize, denseIntermediateSize } = shards.config
  const oneRow = 2 * (2 * PAGE_BYTES + 2 * Math.max(hiddenSize, denseIntermediateSize))
  const sizes = plan.map((layer) => {
    const rows = wholeMatrices(shards, layer)
    return segmentOf(shards, layer.index, false, layer.ffn === 'moe' ? rows : rows.filter(isAttention)).bytes
  })
  return Math.max(Math.ceil(oneRow / PAGE_BYTES) * PAGE_BYTES, ...sizes)
}

const layerSegments = (
  shards: Shards,
  layer: LayerPlan,
  { pinnedLayers }: TrunkPlacement,
  bufferBytes: number
): UnplacedSegment[] => {
  const { index } = layer
  const rows = wholeMatrices(shards, layer)
  const whole = segmentOf(shards, index, pinnedLayers.includes(index), rows)
  if (whole.isPinned || whole.bytes <= bufferBytes) return [whole]
  const { hiddenSize: hidden, denseIntermediateSize: inner } = shards.config
  const blocks = (parts: readonly string[], outDim: number, inDim: number) =>
    rowBlocks(outDim, rowsThatFit(bufferBytes, parts.length, inDim)).map((block) =>
      parts.map((part) => ({ name: layerTensorName(index, `mlp.${part}_proj.weight`), ...block }))
    )
  const pieces = [
    rows.filter(isAttention),
    ...blocks(['gate', 'up'], inner, hidden),
    ...blocks(['down'], hidden, inner)
  ]
  return pieces.map((piece) => segmentOf(shards, index, false, piece))
}

/** A buffer with room left would keep the drive waiting for the next one to be free: what follows is read into it. */
const sharingBuffers = (segments: readonly UnplacedSegment[], bufferBytes: number): TrunkSegment[] => {
  let end = 0
  let group = 0
  return segments.map((segment) => {
    if (segment.isPinned) return { ...segment, group, base: 0 }
    if (end + segment.bytes > bufferBytes) {
      end = 0
      group++
    }
    const base = end
    end += segment.bytes
    return { ...segment, group, base }
  })
}

const isAttention = ({ name }: Rows): boolean => name.includes('.self_attn.')

const wholeMatrices = ({ config }: Shards, layer: LayerPlan): Rows[] =>
  trunkTensors(config, layer)
    .filter(
      ({ name, dtype, shape }) => dtype === 'BF16' && shape.length === 2 && !name.endsWith('_res_proj.weight')
    )
    .map(({ name, shape }) => ({ name, firstRow: 0, rows: shape[0]! }))

/** Rows of each of `matrices` bf16 matrices that fit a buffer together, wherever they begin in a page. */
const rowsThatFit = (bytes: number, matrices: number, width: number): number =>
  Math.floor((bytes / matrices - 2 * PAGE_BYTES) / (2 * width))

/** [0, rows) in as few blocks of at most `most` rows as there can be, of about the same size. */
const rowBlocks = (rows: number, most: number): { firstRow: number; rows: number }[] => {
  const count = Math.ceil(rows / most)
  const edge = (block: number) => Math.floor((rows * block) / count)
  return Array.from({ length: count }, (_, i) => ({ firstRow: edge(i), rows: edge(i + 1) - edge(i) }))
}

const segmentOf = (
  shards: Shards,
  layer: number | null,
  isPinned: boolean,
  rows: readonly Rows[]
): UnplacedSegment => {
  const spans = rows.map((part) => ({ ...part, ...bytesOf(shards.extent(part.name), part) }))
  spans.sort((a, b) => a.file - b.file || a.offset - b.offset)
  // between blocks of rows lie other rows of the same matrices, which other segments read
  const isWhole = spans.every(({ name, rows: count }) => count === shards.extent(name).shape[0])
  const runs: TrunkRun[] = []
  const pieces: TrunkPiece[] = []
  let bytes = 0
  for (let first = 0; first < spans.length; ) {
    const last = lastOfRun(spans, first, isWhole ? GAP_BYTES : 0)
    const { file, offset } = spans[first]!
    const length = spans[last]!.offset + spans[last]!.length - offset
    runs.push({ file, offset, length, at: bytes })
    for (const { name, firstRow, rows: count, offset: from } of spans.slice(first, last + 1))
      pieces.push({ name, firstRow, rows: count, at: bytes + (offset % PAGE_BYTES) + from - offset })
    bytes += paddedBytes(offset, length)
    first = last + 1
  }
  return { layer, isPinned, bytes, runs, pieces }
}

const bytesOf = ({ file, offset, bytes, shape }: Extent, { firstRow, rows }: Rows) => {
  const rowBytes = bytes / shape[0]!
  return { file, offset: offset + firstRow * rowBytes, length: rows * rowBytes }
}

const lastOfRun = (
  spans: readonly { file: number; offset: number; length: number }[],
  first: number,
  gapBytes: number
): number => {
  let last = first
  while (last + 1 < spans.length) {
    const [span, next] = [spans[last]!, spans[last + 1]!]
    if (next.file !== span.file || next.offset - span.offset - span.length > gapBytes) break
    last++
  }
  return last
}
