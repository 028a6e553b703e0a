import { modelDir } from '@k3/demo-model'
import { createPool } from '@k3/task-pool'
import { openReader } from '@k3/uring'
import { describe, expect, it } from 'vitest'
import { bindDecoder } from '../src/bind-decoder.js'
import { openCheckpoint } from '../src/checkpoint/open-checkpoint.js'
import { ExpertMlps } from '../src/expert-mlps.js'
import { DiskExperts } from '../src/experts.js'
import { modelSizes } from '../src/memory/model-sizes.js'
import { openTrunk } from '../src/open-trunk.js'
import { trunkMemory } from '../src/trunk-segments.js'

describe('the sizes that plans are made of', () => {
  it('are what the parts of a model take, or little more', async () => {
    const checkpoint = await openCheckpoint(modelDir)
    const { config, plan } = checkpoint
    const sizes = modelSizes(config, plan)
    const resident = {
      mode: 'resident',
      pinnedLayers: [...plan.keys()],
      ringLayers: 0,
      headRows: config.vocabSize
    } as const
    const { pinnedBytes, bufferBytes } = trunkMemory(checkpoint, plan, resident)
    const planned = sizes.layers.reduce((sum, bytes) => sum + bytes, 0) + sizes.head
    expect(pinnedBytes).toBeLessThanOrEqual(planned)
    expect(pinnedBytes).toBeGreaterThan(0.6 * planned)
    expect(bufferBytes).toBeLessThanOrEqual(sizes.ringBuffer)

    const chunkTokens = 8
    const pool = createPool({ threads: 1 })
    const native = { pool, isa: 'auto' as const }
    await using reader = openReader(checkpoint.files)
    const trunk = openTrunk(
      { mode: 'mmap', pinnedLayers: [], ringLayers: 0, headRows: config.vocabSize },
      { checkpoint, plan, reader, native, chunkTokens }
    )
    const mlps = new ExpertMlps(checkpoint, native)
    const experts = new DiskExperts(checkpoint, reader, { slots: 4, policy: 'lru', inspect: () => undefined })
    const sources = {
      trunk,
      weights: trunk,
      experts,
      mlps,
      native,
      chunkTokens,
      wrap: null,
      lookahead: null,
      onSpan: null
    }
    const { parts } = bindDecoder(config, plan, sources)
    const rows = parts.scratch.bytes / chunkTokens
    expect(rows).toBeLessThanOrEqual(sizes.scratchPerToken)
    expect(rows).toBeGreaterThan(0.4 * sizes.scratchPerToken)
    expect(experts.region.bytes).toBe(4 * sizes.slot)
    expect(parts.layers.reduce((sum, { mixer }) => sum + (mixer.createState()?.bytes ?? 0), 0)).toBe(
      sizes.kdaStates
    )
    experts.close()
    trunk.close()
    pool.close()
  })
})
