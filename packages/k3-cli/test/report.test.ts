import { modelDir } from '@k3/demo-model'
import { openModel } from '@k3/engine'
import { expect, test } from 'vitest'
import { reportJson } from '../src/report.js'

test('the report says how many slots the cache has when others needed memory, beside the number planned', async () => {
  const pressure = () => ({ freeBytes: 50e9, stalledPercent: 30 })
  await using model = await openModel(modelDir, { threads: 1, cacheSlots: 96, parts: { pressure } })
  await using session = model.createSession()
  for (const id of [1, 17, 300]) await session.step(id)
  const report = reportJson(
    {
      answer: { text: '', reasoning: null },
      ids: [],
      finishReason: 'length',
      promptTokens: 3,
      loadMs: 0,
      firstTokenMs: 0,
      totalMs: 0,
      seed: null,
      speculation: null
    },
    model
  )
  expect(report.memory).toMatchObject({ cache_slots: 96 })
  expect(report.cache.slots).toBe(model.cacheSlots)
  expect(report.cache.slots).toBeLessThan(96)
})
