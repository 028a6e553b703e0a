import { readFileSync } from 'node:fs'
import { expectedFile, modelDir } from '@k3/demo-model'
import { openModel } from '@k3/engine'
import { openCheckpoint } from '@k3/engine/checkpoint'
import { expertSourceCases } from '@k3/engine/conformance'
import { describe, expect, it } from 'vitest'
import { BlockingExperts, customEngine, Fifo } from '../custom-engine.js'
import { tinyK3 } from '../tiny-k3.js'

const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8'))
const { prompt_ids: prompt, output_ids: output } = cases[0] as { prompt_ids: number[]; output_ids: number[] }

describe('examples', () => {
  it('tiny-k3 prints the continuation', async () => {
    let text = ''
    const ids = await tinyK3((piece) => {
      text += piece
    })
    expect(ids).toEqual(output.slice(0, 16))
    expect(text.startsWith(' Paris.')).toBe(true)
  })

  it('custom-engine gives the same tokens with a policy, a source and a layer of its own', async () => {
    const { ids, reads, probes } = await customEngine(modelDir, prompt, 20)
    expect(ids).toEqual(output.slice(0, 20))
    expect(reads).toBeGreaterThan(20 * 12 * 4)
    expect(probes.length).toBe(9)
    for (const rms of probes) expect(rms).toBeGreaterThan(0)
  })

  it('a custom eviction policy alone changes no token and keeps the cache full', async () => {
    const model = await openModel(modelDir, { cacheSlots: 96, parts: { policy: new Fifo() } })
    expect((await model.generate({ ids: prompt, maxTokens: 20 })).ids).toEqual(output.slice(0, 20))
    expect(model.traffic.hits).toBeGreaterThan(0)
    await model[Symbol.asyncDispose]()
  })

  const open = async () => {
    const checkpoint = await openCheckpoint(modelDir)
    const source = new BlockingExperts(checkpoint)
    const expected = (layer: number, expert: number) => {
      const area = checkpoint.experts(layer)
      const bytes = readFileSync(checkpoint.files[area.file]!)
      return new Uint8Array(bytes.subarray(area.base(expert), area.base(expert) + area.bytes))
    }
    const read = (base: number, bytes: number) => source.region.view(base, bytes).slice()
    return { source, layer: 5, expertCount: 16, read, expected }
  }
  for (const { name, run } of expertSourceCases(open)) it(`custom ${name}`, run)
})
