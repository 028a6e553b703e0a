import { rmSync } from 'node:fs'
import { modelDir } from '@k3/demo-model'
import { describe, it } from 'vitest'
import { openModel } from '../src/open-model.js'
import { answerRandomSchema } from './random-answers.js'
import { writeSyntheticModel } from './synthetic-model.js'

const SCHEMAS = 500

describe(`${SCHEMAS} random schemas`, { timeout: 3_600_000 }, () => {
  it.for(['demo', 'tiny'])('have valid answers of the model %s', async (name, { annotate }) => {
    const dir = name === 'demo' ? modelDir : writeSyntheticModel('tiny', 7n)
    await using model = await openModel(dir, { threads: 1 })
    const started = performance.now()
    const lengths: number[] = []
    for (let seed = 0; seed < SCHEMAS; seed++) lengths.push(await answerRandomSchema(model, seed))
    const tokens = lengths.reduce((sum, length) => sum + length, 0)
    const seconds = ((performance.now() - started) / 1000).toFixed(0)
    await annotate(
      `${name}: ${lengths.length} schemas, ${lengths.length} valid answers that ended by themselves, ` +
        `${tokens} tokens, the longest ${Math.max(...lengths)}, ${seconds} s`
    )
    if (dir !== modelDir) rmSync(dir, { recursive: true })
  })
})
