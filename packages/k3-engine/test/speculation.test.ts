import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { measuredLength } from '../src/draft-length.js'
import type { Model } from '../src/model.js'
import { NgramDrafts } from '../src/ngram-drafts.js'
import { openModel } from '../src/open-model.js'
import { createSampler } from '../src/sampler.js'
import { PrefixCache } from '../src/sessions.js'
import { StateMark } from '../src/state-mark.js'
import { codeOf, copyOfDemo, demoCase } from './demo-cases.js'

const raw = demoCase('raw-01')
const chat = demoCase('chat-08')
// its own answer is in the prompt, so that drafts are long and mostly right
const repeating = [...chat.prompt, ...chat.output, ...chat.prompt]
const samplers = {
  greedy: () => undefined,
  cool: () => createSampler({ temperature: 0.5, topP: 0.95, seed: 4 }),
  hot: () =>
    createSampler({ temperature: 1.5, topP: 1, seed: 4, repetitionPenalty: 1.1, frequencyPenalty: 0.1 })
}

let model: Model
beforeAll(async () => {
  model = await openModel(modelDir, { threads: 2 })
})
afterAll(() => model[Symbol.asyncDispose]())

describe('speculation', () => {
  it.each(Object.entries(samplers))(
    'gives exactly the serial tokens, %s',
    async (_, sampler) => {
      const runs = [
        [repeating, [1, 4, 32, 'auto']],
        [raw.prompt, [3, 'auto']]
      ] as const
      for (const [ids, lengths] of runs) {
        const request = { ids, maxTokens: 24, logprobs: 1 }
        const serial = await model.generate({ ...request, sampler: sampler() })
        for (const speculate of lengths) {
          const fast = await model.generate({ ...request, sampler: sampler(), speculate })
          expect([fast.ids, fast.logprobs, fast.text]).toEqual([serial.ids, serial.logprobs, serial.text])
          expect(fast.finishReason).toBe(serial.finishReason)
        }
        expect(serial.speculation).toBeNull()
      }
    },
    30_000
  )

  it('saves passes where the text repeats itself', async () => {
    const { ids, speculation } = await model.generate({ ids: repeating, maxTokens: 100, speculate: 8 })
    expect(ids).toEqual((await model.generate({ ids: repeating, maxTokens: 100 })).ids)
    expect(speculation!.accepted).toBeGreaterThan(ids.length / 2)
    expect(speculation!.passes).toBeLessThan(ids.length / 2)
    expect(speculation!.drafted).toBeGreaterThanOrEqual(speculation!.accepted)
  })

  it('leaves a session as a serial run does, also when the loop is left in the middle of a draft', async () => {
    const whole = await model.generate({ ids: repeating, maxTokens: 20 })
    for (const count of [1, 2, 3, 5, 8, 13]) {
      const session = model.createSession()
      let seen = 0
      for await (const part of model.generate({ session, ids: repeating, maxTokens: 20, speculate: 4 })) {
        if (part.type === 'text' && ++seen === count) break
      }
      expect(session.ids).toEqual([...repeating, ...whole.ids.slice(0, count - 1)])
      const plain = model.createSession()
      await plain.append(session.ids)
      expect(session.logits).toEqual(plain.logits)
      expect(await session.step(9)).toEqual(await plain.step(9))
    }
  }, 20_000)

  it('leaves what a prefix cache can be trusted with', async () => {
    const prefixCache = new PrefixCache(model, { maxBytes: 1 << 28 })
    const first = await model.generate({ ids: repeating, maxTokens: 9, speculate: 5, prefixCache })
    const ids = [...repeating, ...first.ids, 4, 5]
    const second = await model.generate({ ids, maxTokens: 9, speculate: 5, prefixCache })
    expect(second.reusedTokens).toBe(repeating.length + 8)
    expect(second.ids).toEqual((await model.generate({ ids, maxTokens: 9 })).ids)
  })

  it('obeys a constraint token by token', async () => {
    const even = () => ({ mask: () => new Uint32Array(62).fill(0x55555555), accept: () => undefined })
    const serial = await model.generate({ ids: repeating, maxTokens: 16, constraint: even() })
    const fast = await model.generate({ ids: repeating, maxTokens: 16, constraint: even(), speculate: 6 })
    expect(fast.ids).toEqual(serial.ids)
    expect(fast.ids.every((id) => id % 2 === 0)).toBe(true)
  })

  it('ends with the context exactly where a serial run does', async () => {
    const dir = copyOfDemo()
    const config = path.join(dir, 'config.json')
    const text = readFileSync(config, 'utf8').replace(/("max_position_embeddings": )\d+/, '$180')
    writeFileSync(config, text)
    const short = await openModel(dir, { threads: 2 })
    const forbidden = short.config.tokens.eos.map((id) => [id, Number.NEGATIVE_INFINITY] as const)
    const endless = { temperature: 0, topP: 1, logitBias: new Map(forbidden) }
    for (const length of [72, 79, 80]) {
      const ids = repeating.slice(0, length)
      const request = { ids, maxTokens: 50, sampler: createSampler({ ...endless, seed: 1 }) }
      const serial = await short.generate(request)
      const fast = await short.generate({ ...request, speculate: 8 })
      expect([fast.ids, fast.finishReason]).toEqual([serial.ids, 'length'])
      expect(serial.ids.length).toBe(81 - length)
    }
    await short[Symbol.asyncDispose]()
  })

  it('rejects with the reason of an abort', async () => {
    const controller = new AbortController()
    const run = async () => {
      const request = { ids: repeating, maxTokens: 40, speculate: 4, signal: controller.signal }
      for await (const part of model.generate(request))
        if (part.type === 'text') controller.abort(new Error('enough'))
    }
    await expect(run()).rejects.toThrow('enough')
  })

  it.each([0, 33, 1.5, Number.NaN, 'yes'])('refuses %s by name', async (speculate) => {
    const work = model.generate({ ids: [1], maxTokens: 1, speculate: speculate as never })
    expect(await codeOf(work)).toBe('ERR_K3_REQUEST')
  })
})

describe('a session mark', () => {
  it('brings back the bits of the place, any number of times', async () => {
    const session = model.createSession()
    await session.append(raw.prompt)
    const mark = new StateMark()
    session.mark(mark)
    const first = await session.append([5, 6, 7])
    for (const detour of [[9], [10, 11, 12, 13]]) {
      session.rewind(mark)
      expect(session.ids).toEqual(raw.prompt)
      await session.append(detour)
    }
    session.rewind(mark)
    expect(await session.append([5, 6, 7])).toEqual(first)
  })
})

describe('n-gram drafts', () => {
  it('continue the longest earlier match, the latest on ties', () => {
    expect(new NgramDrafts([1, 2, 3, 9, 2, 3, 8, 1, 2, 3]).propose(3)).toEqual([9, 2, 3])
    expect(new NgramDrafts([2, 3, 9, 2, 3, 8, 7, 2, 3]).propose(2)).toEqual([8, 7])
  })

  it('go on with themselves where the sequence ends', () => {
    expect(new NgramDrafts([5, 6, 5, 6]).propose(5)).toEqual([5, 6, 5, 6, 5])
    expect(new NgramDrafts([4, 4, 4]).propose(3)).toEqual([4, 4, 4])
  })

  it('are none for a new end, a short sequence, and no room', () => {
    expect(new NgramDrafts([1, 2, 3]).propose(4)).toEqual([])
    expect(new NgramDrafts([1]).propose(4)).toEqual([])
    expect(new NgramDrafts([]).propose(4)).toEqual([])
    expect(new NgramDrafts([5, 6, 5, 6]).propose(0)).toEqual([])
  })

  it('are what a search through the whole sequence finds', () => {
    const search = (ids: readonly number[]): number | undefined => {
      let best: number | undefined
      let longest = 1
      for (let place = ids.length - 1; place >= 2; place--) {
        let length = 0
        while (length < place && ids[place - 1 - length] === ids[ids.length - 1 - length]) length++
        if (Math.min(length, 32) > longest) {
          longest = Math.min(length, 32)
          best = ids[place]
        }
      }
      return best
    }
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 60 }), (ids) => {
        expect(new NgramDrafts(ids).propose(1)).toEqual([search(ids)].filter((id) => id !== undefined))
      }),
      { numRuns: 500, seed: 2 }
    )
  })
})

describe('the measured draft length', () => {
  it('grows with acceptance, pauses without it, and tries again', () => {
    const length = measuredLength()
    expect(length.next()).toBe(4)
    for (let i = 0; i < 4; i++) length.observe(4, 4)
    expect(length.next()).toBe(8)
    for (let i = 0; i < 6; i++) length.observe(8, 0)
    expect(Array.from({ length: 32 }, () => length.next())).toEqual(new Array(32).fill(0))
    expect(length.next()).toBe(2)
    length.observe(2, 2)
    length.observe(2, 2)
    expect(length.next()).toBe(4)
  })
})
