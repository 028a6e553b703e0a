import { modelDir } from '@k3/demo-model'
import { describe, expect, it } from 'vitest'
import { openCheckpoint } from '../src/checkpoint/open-checkpoint.js'
import type { ModelOptions } from '../src/model-options.js'
import { openModel } from '../src/open-model.js'

const IDS = [1, 17, 300, 5, 5, 88, 1024]

const logitsOf = async (options: ModelOptions): Promise<Float32Array> => {
  await using model = await openModel(modelDir, { threads: 2, ...options })
  const all = await model.forward(IDS)
  await using session = model.createSession()
  await session.append(IDS)
  const next = await session.step(9)
  return Float32Array.of(...all, ...next)
}

describe('the demo model', async () => {
  const want = await logitsOf({})
  const placements: ModelOptions[] = [
    { trunk: 'resident' },
    { trunk: 'stream' },
    { trunk: 'stream', ringLayers: 3, pinnedLayers: [0, 4] },
    { trunk: 'stream', ringLayers: 40 }
  ]
  const ways = placements.flatMap((placement, i) =>
    (['io_uring', 'pread'] as const).map((backend, j) => ({
      ...placement,
      backend,
      direct: (i + j) % 2 === 0 ? ('auto' as const) : ('off' as const),
      lookahead: [0, 3, 16][(2 * i + j) % 3]!,
      chunkTokens: [1, 3, 64][(i + j) % 3]!,
      cacheSlots: [4, 5, 17, 96][(2 * i + j) % 4]!
    }))
  )
  it.each(ways)('has the same bits with %o', async (way) => {
    expect(Buffer.from((await logitsOf(way)).buffer).equals(Buffer.from(want.buffer))).toBe(true)
  })

  it('counts what lookahead did', async () => {
    await using model = await openModel(modelDir, {
      threads: 1,
      cacheSlots: 24,
      lookahead: 5,
      trunk: 'stream'
    })
    await using session = model.createSession()
    for (const id of IDS) await session.step(id)
    const { predicted, chosen, usedReads, wastedReads, wastedBytes } = model.traffic.lookahead
    const checkpoint = await openCheckpoint(modelDir)
    const moeLayers = checkpoint.plan.filter(({ ffn }) => ffn === 'moe').length
    expect(predicted).toHaveLength(5)
    predicted.forEach((count, rank) => {
      // a layer whose router is not there yet is not predicted for
      expect(count).toBeLessThanOrEqual(IDS.length * moeLayers)
      expect(chosen[rank]).toBeLessThanOrEqual(count)
    })
    expect(chosen[0]!).toBeGreaterThan(predicted[0]! / 2)
    expect(usedReads + wastedReads).toBeGreaterThan(0)
    expect(wastedBytes).toBe(wastedReads * checkpoint.experts(1).bytes)
  })
})
