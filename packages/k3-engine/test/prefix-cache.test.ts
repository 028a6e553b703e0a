import { modelDir } from '@k3/demo-model'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Model } from '../src/model.js'
import { openModel } from '../src/open-model.js'
import { createSampler } from '../src/sampler.js'
import { PrefixCache } from '../src/sessions.js'
import { codeOf, demoCase } from './demo-cases.js'

const { prompt } = demoCase('chat-08')
const plenty = 1 << 30
const samplers = {
  greedy: () => undefined,
  sampled: () => createSampler({ temperature: 2, topP: 0.95, seed: 3, presencePenalty: 0.5 })
}

let model: Model
beforeAll(async () => {
  model = await openModel(modelDir, { threads: 2 })
})
afterAll(() => model[Symbol.asyncDispose]())

describe('a prefix cache', () => {
  it.each(Object.entries(samplers))(
    'gives the bits of a run from scratch over three turns, %s',
    async (_, sampler) => {
      const prefixCache = new PrefixCache(model, { maxBytes: plenty, interval: 16 })
      let ids: readonly number[] = prompt
      for (const [turn, more] of [[9, 10, 11], [400], []].entries()) {
        const request = { ids, maxTokens: 7, logprobs: 2 }
        const scratch = await model.generate({ ...request, sampler: sampler() })
        const reused = await model.generate({ ...request, sampler: sampler(), prefixCache })
        expect([reused.ids, reused.logprobs]).toEqual([scratch.ids, scratch.logprobs])
        expect(reused.promptTokens).toBe(ids.length)
        if (turn > 0) expect(reused.reusedTokens).toBeGreaterThanOrEqual(prompt.length)
        ids = [...ids, ...reused.ids, ...more]
      }
    }
  )

  it('starts the same prompt again without running a token of it', async () => {
    const prefixCache = new PrefixCache(model, { maxBytes: plenty })
    const first = await model.generate({ ids: prompt, maxTokens: 4, prefixCache })
    const again = await model.generate({ ids: prompt, maxTokens: 4, prefixCache })
    expect(again).toMatchObject({ ids: first.ids, reusedTokens: prompt.length })
    expect(prefixCache.positions.toSorted((a, b) => a - b)).toEqual([prompt.length, prompt.length + 3])
  })

  it('gives no token of a known prompt when the abort was there before', async () => {
    const prefixCache = new PrefixCache(model, { maxBytes: plenty })
    await model.generate({ ids: prompt, maxTokens: 1, prefixCache })
    const signal = AbortSignal.abort(new Error('early'))
    const parts: string[] = []
    const run = async () => {
      for await (const { type } of model.generate({ ids: prompt, maxTokens: 4, prefixCache, signal })) {
        parts.push(type)
      }
    }
    await expect(run()).rejects.toThrow('early')
    expect(parts).toEqual([])
  })

  it('keeps what ran of a prompt that was aborted or left, and goes on from there', async () => {
    // every look at the clock is long after the last: a generation gives way after each layer, however fast they are
    let clock = 0
    using _ = vi.spyOn(performance, 'now').mockImplementation(() => (clock += 1000))
    const long = Array.from({ length: 100 }, (_, i) => (i * 37) % 1900)
    for (const leave of ['abort', 'break']) {
      const prefixCache = new PrefixCache(model, { maxBytes: plenty, interval: 32 })
      const controller = new AbortController()
      const reason = new Error('enough')
      const run = async () => {
        const { signal } = controller
        for await (const part of model.generate({ ids: long, maxTokens: 1, prefixCache, signal })) {
          if (part.type !== 'progress' || part.done < 70) continue
          if (leave === 'break') break
          controller.abort(reason)
        }
      }
      if (leave === 'break') await run()
      else await expect(run()).rejects.toBe(reason)
      expect(prefixCache.positions).toEqual([32, 64])
      const { ids, reusedTokens } = await model.generate({ ids: long, maxTokens: 3, prefixCache })
      expect(reusedTokens).toBe(64)
      expect(ids).toEqual((await model.generate({ ids: long, maxTokens: 3 })).ids)
    }
  })

  it.each([undefined, 3])(
    'keeps what was there of an answer that was aborted, with speculate %s',
    async (speculate) => {
      const prefixCache = new PrefixCache(model, { maxBytes: plenty, interval: 16 })
      const forbidden = model.config.tokens.eos.map((id) => [id, Number.NEGATIVE_INFINITY] as const)
      const endless = () =>
        createSampler({ temperature: 2, topP: 0.95, seed: 3, logitBias: new Map(forbidden) })
      const controller = new AbortController()
      const { signal } = controller
      const seen: number[] = []
      const run = async () => {
        const request = { ids: prompt, maxTokens: 200, sampler: endless(), prefixCache, speculate, signal }
        for await (const part of model.generate(request)) {
          if (part.type !== 'text' || part.id === null) continue
          if (seen.push(part.id) === 60) controller.abort(new Error('enough'))
        }
      }
      await expect(run()).rejects.toThrow('enough')
      const ids = [...prompt, ...seen]
      const longest = Math.max(...prefixCache.positions)
      expect(longest).toBeGreaterThan(prompt.length + 32)
      const reused = await model.generate({ ids, maxTokens: 5, logprobs: 2, prefixCache })
      const scratch = await model.generate({ ids, maxTokens: 5, logprobs: 2 })
      expect([reused.ids, reused.logprobs]).toEqual([scratch.ids, scratch.logprobs])
      expect(reused.reusedTokens).toBe(longest)
    }
  )

  it('serves two generations at once', async () => {
    const prefixCache = new PrefixCache(model, { maxBytes: plenty, interval: 8 })
    const run = (last: number) =>
      Promise.resolve(model.generate({ ids: [...prompt, last], maxTokens: 3, prefixCache }))
    const [a, b] = await Promise.all([run(5), run(6)])
    const scratch = await model.generate({ ids: [...prompt, 6], maxTokens: 3 })
    expect(b.ids).toEqual(scratch.ids)
    expect((await run(5)).ids).toEqual(a.ids)
  })

  it('holds no more bytes than it may, and lets the least recently used go', async () => {
    const session = model.createSession()
    await session.append(prompt)
    const prefixCache = new PrefixCache(model, { maxBytes: Math.floor(2.5 * session.bytes) })
    const other = model.createSession()
    await other.append([...prompt.slice(0, -1), 3])
    const third = model.createSession()
    await third.append([...prompt.slice(0, -1), 4])
    prefixCache.keep(session)
    prefixCache.keep(other)
    prefixCache.keep(session)
    prefixCache.keep(third)
    expect(prefixCache.positions.length).toBe(2)
    expect(prefixCache.bytes).toBeLessThanOrEqual(2.5 * session.bytes)
    expect(prefixCache.open(prompt).position).toBe(prompt.length)
    expect(prefixCache.open(other.ids).position).toBe(0)
    prefixCache.clear()
    expect(prefixCache.open(prompt).position).toBe(0)
    const none = new PrefixCache(model, { maxBytes: 0 })
    none.keep(session)
    expect(none.bytes).toBe(0)
  })

  it('never keeps a session that failed', async () => {
    const prefixCache = new PrefixCache(model, { maxBytes: plenty })
    const work = model.generate({ ids: [...prompt, 5000], maxTokens: 1, prefixCache })
    expect(await codeOf(work)).toBe('ERR_K3_TOKEN_ID')
    expect(prefixCache.positions).toEqual([])
  })

  it.each([
    { maxBytes: -1 },
    { maxBytes: Number.NaN },
    { maxBytes: 1, interval: 0 },
    { maxBytes: 1, intervals: 4 }
  ])('refuses %o by name', (options) => {
    const field = Object.keys(options).at(-1)
    expect(() => new PrefixCache(model, options as never)).toThrow(
      expect.objectContaining({ code: 'ERR_K3_OPTION', field })
    )
  })
})

describe('a generation on a session', () => {
  it('appends to it and leaves it with all tokens but the last', async () => {
    const session = model.createSession()
    const first = await model.generate({ session, ids: prompt, maxTokens: 4 })
    expect(session.ids).toEqual([...prompt, ...first.ids.slice(0, 3)])
    const more = [first.ids[3]!, 12, 13]
    const second = await model.generate({ session, ids: more, maxTokens: 4 })
    const scratch = await model.generate({ ids: [...prompt, ...first.ids, 12, 13], maxTokens: 4 })
    expect(second.ids).toEqual(scratch.ids)
    expect(second).toMatchObject({ promptTokens: scratch.promptTokens, reusedTokens: prompt.length + 3 })
  })

  it('is refused by name while another one runs on it, and a fork while a call does', async () => {
    const session = model.createSession()
    const first = codeOf(model.generate({ session, ids: prompt, maxTokens: 2 }))
    expect(await codeOf(model.generate({ session, ids: prompt, maxTokens: 2 }))).toBe('ERR_K3_SESSION_BUSY')
    expect(() => session.fork()).toThrow(expect.objectContaining({ code: 'ERR_K3_SESSION_BUSY' }))
    expect(await first).toBe('resolved')
    expect(session.fork().ids).toEqual(session.ids)
  })

  it('is refused by name without a token to start from, and with parts of another model', async () => {
    const refused = async (request: object) => codeOf(model.generate({ ids: [], maxTokens: 1, ...request }))
    expect(await refused({})).toBe('ERR_K3_REQUEST')
    expect(await refused({ session: model.createSession() })).toBe('ERR_K3_REQUEST')
    const other = await openModel(modelDir)
    const prefixCache = new PrefixCache(other, { maxBytes: plenty })
    expect(await refused({ session: other.createSession() })).toBe('ERR_K3_REQUEST')
    expect(await refused({ prefixCache })).toBe('ERR_K3_REQUEST')
    expect(
      await refused({ session: model.createSession(), prefixCache: new PrefixCache(model, { maxBytes: 0 }) })
    ).toBe('ERR_K3_REQUEST')
    await other[Symbol.asyncDispose]()
  })
})
