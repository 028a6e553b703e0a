import { configText, geometryOf } from '@k3/synth'
import { paddedBytes } from '@k3/uring'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Extent } from '../src/checkpoint/types.js'
import { parseConfig } from '../src/config.js'
import { layerPlan } from '../src/layer-plan.js'
import {
  byFileOrder,
  modelTensors,
  type TensorRecord,
  tensorBytes,
  trunkTensors
} from '../src/tensor-names.js'
import type { TrunkPlacement } from '../src/trunk-placement.js'
import { HEAD, mostHeadRows, type TrunkSegment, trunkMemory, trunkSegments } from '../src/trunk-segments.js'

const PAGE = 4096

/** The shards of a geometry as far as extents go: one a layer and one for the rest, data after a header of `start` bytes. */
const shardsOf = (preset: string, settings: readonly string[], start: number) => {
  const config = parseConfig(configText(geometryOf(preset, settings)), preset)
  const plan = layerPlan(config)
  const extents = new Map<string, Extent>()
  const lay = (records: readonly TensorRecord[], file: number) => {
    let offset = start
    for (const record of [...records].sort(byFileOrder)) {
      const bytes = tensorBytes(record)
      extents.set(record.name, { file, offset, bytes, dtype: record.dtype, shape: record.shape })
      offset += bytes
    }
  }
  for (const layer of plan) lay(trunkTensors(config, layer), layer.index)
  lay(modelTensors(config), plan.length)
  return { plan, shards: { config, extent: (name: string) => extents.get(name)! } }
}

const streamed = (headRows: number, pinnedLayers: readonly number[] = []): TrunkPlacement => ({
  mode: 'stream',
  pinnedLayers,
  ringLayers: 2,
  headRows
})

/** Streamed segments lie one after the other in the buffer of their group, and in as few groups as that order allows. */
const checkBases = (segments: readonly TrunkSegment[], bufferBytes: number): void => {
  let before: TrunkSegment | null = null
  for (const segment of segments) {
    if (segment.isPinned) continue
    const end = before === null ? 0 : before.base + before.bytes
    const isBeside = before !== null && end + segment.bytes <= bufferBytes
    expect(segment.base).toBe(isBeside ? end : 0)
    if (before !== null) expect(segment.group === before.group).toBe(isBeside)
    expect(segment.base + segment.bytes).toBeLessThanOrEqual(bufferBytes)
    before = segment
  }
}

const full = shardsOf('full', [], 824_112)

describe('the segments of the released model', () => {
  const rows = mostHeadRows(full.shards, full.plan)
  const segments = trunkSegments(full.shards, full.plan, streamed(rows, [5]))

  it('are one contiguous run for each layer with experts', () => {
    const layers = segments.filter(({ layer }) => layer !== null && layer > 0)
    expect(layers.map(({ layer }) => layer)).toEqual(full.plan.slice(1).map(({ index }) => index))
    expect(layers.every(({ runs }) => runs.length === 1)).toBe(true)
    // all of it but the F32 vectors before the matrices, which are bound at open
    expect(layers[0]!.runs[0]!.length).toBe(1_267_744_256 - 643_584)
    expect(layers.filter(({ isPinned }) => isPinned).map(({ layer }) => layer)).toEqual([5])
  })

  it('cut the dense layer and the head into what a buffer holds', () => {
    const { bufferBytes, ringBytes } = trunkMemory(full.shards, full.plan, streamed(rows))
    expect(ringBytes).toBe(2 * bufferBytes)
    expect(bufferBytes).toBeLessThan(1_267_744_256 + 2 * PAGE)
    const dense = segments.filter(({ layer }) => layer === 0)
    expect(dense.map(({ pieces }) => pieces.length)).toEqual([8, 2, 1])
    expect(segments.filter(({ layer }) => layer === null)).toHaveLength(2)
    checkBases(segments, bufferBytes)
    // as large as they are, none shares a buffer
    expect(segments.every(({ base }) => base === 0)).toBe(true)
  })

  it('are refused when rows of the head are to be read together that do not fit', () => {
    const ask = () => trunkSegments(full.shards, full.plan, streamed(rows + 1))
    expect(ask).toThrow(expect.objectContaining({ code: 'ERR_K3_OPTION', need: rows }))
  })
})

describe('the segments of any geometry', () => {
  it('hold every row of every matrix once, where its read puts it, and fit a buffer', () => {
    const geometry = fc.record({
      preset: fc.constantFrom('tiny', 'tiny-93'),
      dense: fc.integer({ min: 1, max: 40 }).map((n) => 32 * n),
      start: fc.nat(1000).map((n) => 8 * n),
      headShare: fc.integer({ min: 1, max: 9 }),
      pinned: fc.array(fc.nat(11))
    })
    const property = fc.property(geometry, ({ preset, dense, start, headShare, pinned }) => {
      const { plan, shards } = shardsOf(preset, [`intermediate_size=${dense}`], start)
      const headRows = Math.min(mostHeadRows(shards, plan), Math.ceil(shards.config.vocabSize / headShare))
      const placement = streamed(headRows, pinned)
      const { bufferBytes } = trunkMemory(shards, plan, placement)
      const seen = new Map<string, number>()
      const segments = trunkSegments(shards, plan, placement)
      checkBases(segments, bufferBytes)
      for (const { bytes, runs, pieces } of segments) {
        runs.forEach(({ at, offset, length }, i) => {
          const end = runs[i + 1] === undefined ? bytes : runs[i + 1]!.at
          expect([at % PAGE, at + paddedBytes(offset, length)]).toEqual([0, end])
        })
        for (const { name, firstRow, rows, at } of pieces) {
          expect(firstRow).toBe(seen.get(name) ?? 0)
          seen.set(name, firstRow + rows)
          const { file, offset, bytes: whole, shape } = shards.extent(name)
          const from = offset + (firstRow * whole) / shape[0]!
          const run = runs.find(
            (one) => one.file === file && one.offset <= from && from < one.offset + one.length
          )!
          expect(at).toBe(run.at + (run.offset % PAGE) + from - run.offset)
        }
      }
      const matrices = [
        HEAD,
        ...plan.flatMap((layer) => trunkTensors(shards.config, layer).map(({ name }) => name))
      ].filter((name) => shards.extent(name).shape.length === 2 && !name.endsWith('_res_proj.weight'))
      for (const name of matrices) expect(seen.get(name)).toBe(shards.extent(name).shape[0])
      expect(seen.size).toBe(matrices.length)
    })
    fc.assert(property, { numRuns: 30 })
  })
})
