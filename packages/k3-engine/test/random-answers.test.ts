import { rmSync } from 'node:fs'
import { modelDir } from '@k3/demo-model'
import { describe, it } from 'vitest'
import { openModel } from '../src/open-model.js'
import { answerRandomSchema } from './random-answers.js'
import { writeSyntheticModel } from './synthetic-model.js'

// a part of what random-answers.long.ts does with 500 schemas
describe('random schemas', { timeout: 120_000 }, () => {
  it('have valid answers of the demo model', async () => {
    await using model = await openModel(modelDir, { threads: 1 })
    for (let seed = 0; seed < 75; seed++) await answerRandomSchema(model, seed)
  })

  it('have valid answers of a model with random weights', async () => {
    const dir = writeSyntheticModel('tiny', 7n)
    await using model = await openModel(dir, { threads: 1 })
    for (let seed = 0; seed < 30; seed++) await answerRandomSchema(model, seed)
    rmSync(dir, { recursive: true })
  })
})
