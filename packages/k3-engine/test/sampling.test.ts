import { readFileSync } from 'node:fs'
import { expectedFile, modelDir } from '@k3/demo-model'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GenerationPart } from '../src/generate.js'
import type { TokenConstraint } from '../src/interfaces.js'
import type { Model } from '../src/model.js'
import { openModel } from '../src/open-model.js'
import { createSampler, recommendedSampling, type SamplerSettings } from '../src/sampling.js'
import { chiSquareExcess, exactProbabilities } from './exact-sampling.js'

const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8'))
const { prompt_ids: prompt, output_ids: output } = cases[0] as { prompt_ids: number[]; output_ids: number[] }

let model: Model
let logits: Float32Array
beforeAll(async () => {
  model = await openModel(modelDir, { threads: 2 })
  logits = await model.createSession().append(prompt)
})
afterAll(() => model[Symbol.asyncDispose]())

describe('samples of the demo model', () => {
  it.each<Partial<SamplerSettings>>([
    { topP: 1 },
    recommendedSampling,
    { temperature: 3, topP: 0.9 },
    { temperature: 2, topK: 50 },
    { temperature: 2, topK: 40, topP: 0.8 },
    { temperature: 1.5, minP: 0.02 },
    { temperature: 2.5, topK: 100, topP: 0.95, minP: 0.05 }
  ])('have the exact probabilities with %o (chi-square)', (given) => {
    const settings = { temperature: 1, topP: 1, topK: 0, minP: 0, ...given }
    const sampler = createSampler({ ...settings, seed: 5 })
    expect(
      chiSquareExcess(() => sampler.pick(logits, null), exactProbabilities(logits, settings))
    ).toBeLessThan(1)
  })

  it('repeat with the same seed and differ with another', async () => {
    const run = async (seed: number) =>
      model.generate({
        ids: prompt,
        maxTokens: 12,
        sampler: createSampler({ temperature: 2, topP: 0.95, seed })
      })
    const [a, b, c] = [await run(1), await run(1), await run(2)]
    expect(b.ids).toEqual(a.ids)
    expect(c.ids).not.toEqual(a.ids)
  })

  it('never repeat a token under the highest penalty, those of the prompt included', async () => {
    const sampler = createSampler({
      temperature: 0,
      topP: 1,
      seed: 0,
      repetitionPenalty: 100,
      presencePenalty: 2
    })
    const { ids } = await model.generate({ ids: prompt, maxTokens: 20, sampler })
    expect(new Set([...prompt, ...ids]).size).toBe(new Set(prompt).size + ids.length)
  })
})

describe('a constraint', () => {
  const only = (sequence: readonly number[]): TokenConstraint & { seen: number[] } => {
    const seen: number[] = []
    return {
      seen,
      mask: () => {
        const words = new Uint32Array(Math.ceil(model.config.vocabSize / 32))
        const id = sequence[seen.length]
        if (id === undefined) return null
        words[id >>> 5] = 1 << (id & 31)
        return words
      },
      accept: (id) => {
        seen.push(id)
      }
    }
  }

  it('decides the tokens as long as it wants, is told each of them, and null allows all', async () => {
    const forced = [7, 1500, 31, 32]
    const constraint = only(forced)
    const { ids } = await model.generate({ ids: prompt, maxTokens: 8, constraint })
    expect(ids.slice(0, 4)).toEqual(forced)
    expect(constraint.seen).toEqual(ids)
    const free = await model.generate({ ids: [...prompt, ...forced], maxTokens: 4 })
    expect(ids.slice(4)).toEqual(free.ids)
  })

  it('that allows nothing ends the request by name', async () => {
    const constraint = { mask: () => new Uint32Array(62), accept: () => undefined }
    const work = Promise.resolve(model.generate({ ids: prompt, maxTokens: 2, constraint }))
    await expect(work).rejects.toMatchObject({ code: 'ERR_K3_NO_TOKEN_ALLOWED' })
  })

  it('is held against a sampler that ignores it', async () => {
    const sampler = { begin: () => undefined, accept: () => undefined, pick: () => 3 }
    const work = Promise.resolve(
      model.generate({ ids: prompt, maxTokens: 2, sampler, constraint: only([4]) })
    )
    await expect(work).rejects.toMatchObject({ code: 'ERR_K3_SAMPLER', field: 'sampler' })
  })
})

describe('log-probabilities', () => {
  it('come with each token and in the result, from the unmodified logits', async () => {
    const parts: GenerationPart[] = []
    const sampler = createSampler({ temperature: 0, topP: 1, seed: 0, logitBias: { [output[0]!]: -100 } })
    for await (const part of model.generate({ ids: prompt, maxTokens: 3, logprobs: 4, sampler }))
      parts.push(part)
    const texts = parts.filter((part) => part.type === 'text' && part.logprobs !== null)
    const finish = parts.at(-1)!
    if (finish.type !== 'finish') throw new Error('the last part is finish')
    expect(finish.logprobs).toEqual(texts.map((part) => part.type === 'text' && part.logprobs))
    const [first] = finish.logprobs!
    expect(first!.best[0]!.id).toBe(output[0])
    expect(first!.best[1]).toEqual({ id: first!.id, logprob: first!.logprob })
    const exact = exactProbabilities(logits, { temperature: 1, topP: 1, topK: 0, minP: 0 })
    for (const { id, logprob } of first!.best) expect(Math.exp(logprob)).toBeCloseTo(exact[id]!, 10)
  })

  it('are absent unless asked for', async () => {
    expect((await model.generate({ ids: prompt, maxTokens: 1 })).logprobs).toBeNull()
    const { logprobs } = await model.generate({ ids: prompt, maxTokens: 1, logprobs: 0 })
    expect(logprobs![0]!.best).toEqual([])
  })

  it.each([{ logprobs: -1 }, { logprobs: 101 }, { logprobs: 1.5 }, { max_tokens: 4 }, { temperature: 1 }])(
    'and other fields are refused by name: %o',
    async (wrong) => {
      const work = Promise.resolve(model.generate({ ids: prompt, maxTokens: 1, ...wrong }))
      await expect(work).rejects.toMatchObject({ code: 'ERR_K3_REQUEST', field: Object.keys(wrong)[0] })
    }
  )
})
