import { readFileSync } from 'node:fs'
import { expectedFile, modelDir } from '@k3/demo-model'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GenerationPart } from '../src/generate.js'
import type { Model } from '../src/model.js'
import type { ModelOptions } from '../src/model-options.js'
import { openModel } from '../src/open-model.js'

interface Case {
  readonly name: string
  readonly prompt_ids: number[]
  readonly output_ids: number[]
  readonly output_text: string
}

const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8')) as { cases: Case[] }
const raw = cases.find(({ name }) => name === 'raw-01')!
const chat = cases.find(({ name, output_ids }) => name.startsWith('chat') && output_ids.length < 60)!

const codeOf = async (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => 'resolved',
    (error: { code?: string }) => error.code
  )

const withModel = async <T>(options: ModelOptions, work: (model: Model) => Promise<T>): Promise<T> => {
  const model = await openModel(modelDir, options)
  try {
    return await work(model)
  } finally {
    await model[Symbol.asyncDispose]()
  }
}

describe('a model', () => {
  let model: Model
  beforeAll(async () => {
    model = await openModel(modelDir, { threads: 2 })
  })
  afterAll(() => model[Symbol.asyncDispose]())

  it('generates what the reference decoder generates, text and stop token included', async () => {
    const result = await model.generate({ ids: chat.prompt_ids, maxTokens: 200 })
    expect(result.ids).toEqual(chat.output_ids)
    expect(result.finishReason).toBe('stop')
  })

  it('streams the same tokens and text as it returns', async () => {
    const parts: GenerationPart[] = []
    for await (const part of model.generate({ prompt: 'The capital of France is', maxTokens: 12 }))
      parts.push(part)
    const finish = parts.at(-1)!
    const texts = parts.filter((part) => part.type === 'text')
    expect(finish.type === 'finish' && finish.ids).toEqual(raw.output_ids.slice(0, 12))
    expect(texts.map(({ id }) => id)).toEqual(raw.output_ids.slice(0, 12))
    expect(finish.type === 'finish' && finish.text).toBe(texts.map(({ text }) => text).join(''))
    expect(raw.output_text.startsWith(texts.map(({ text }) => text).join(''))).toBe(true)
  })

  it('gives the text held back to the end without repeating its token', async () => {
    const halfACharacter = 0xe4 - 0xae + 106 // bytes 0xAE to 0xFF are ids 106 to 187
    const parts: GenerationPart[] = []
    const ignore = () => undefined
    const sampler = { begin: ignore, accept: ignore, pick: () => halfACharacter }
    for await (const part of model.generate({ ids: [1], maxTokens: 1, sampler })) parts.push(part)
    expect(parts.slice(-3)).toEqual([
      { type: 'text', id: halfACharacter, text: '', logprobs: null },
      { type: 'text', id: null, text: '\ufffd', logprobs: null },
      expect.objectContaining({ type: 'finish', ids: [halfACharacter], text: '\ufffd' })
    ])
  })

  it('ends at a stop text that crosses tokens and keeps nothing of it', async () => {
    const result = await model.generate({
      prompt: 'The capital of France is',
      maxTokens: 48,
      stop: ['Philippines']
    })
    expect(result.text).toBe(' Paris. The capital of the ')
    expect(result.finishReason).toBe('stop')
  })

  it('stops at maxTokens with reason length', async () => {
    const result = await model.generate({ ids: raw.prompt_ids, maxTokens: 3 })
    expect(result).toMatchObject({ ids: raw.output_ids.slice(0, 3), finishReason: 'length', promptTokens: 6 })
  })

  it('gives each of two interleaved sessions the logits it has alone', async () => {
    const alone = await model.forward(raw.prompt_ids)
    const vocab = model.config.vocabSize
    const [a, b] = [model.createSession(), model.createSession()]
    for (let i = 0; i < raw.prompt_ids.length; i++) {
      const [mine] = await Promise.all([a.step(raw.prompt_ids[i]!), b.step(chat.prompt_ids[i]!)])
      expect(mine).toEqual(alone.slice(i * vocab, (i + 1) * vocab))
    }
  })

  it('forks a session into two that do not share state', async () => {
    const session = model.createSession()
    await session.append(raw.prompt_ids)
    const fork = session.fork()
    const first = await session.step(5)
    await session.step(6)
    expect(await fork.step(5)).toEqual(first)
    expect(fork.position).toBe(raw.prompt_ids.length + 1)
  })

  it('observes routing and the residual prefix of every layer', async () => {
    const layers: number[] = []
    await model.forward(raw.prompt_ids, {
      observe: ({ layer, prefix, experts, weights }) => {
        layers.push(layer)
        expect(prefix.length).toBe(model.config.hiddenSize)
        expect([experts.length, weights.length]).toEqual(layer === 0 ? [0, 0] : [4, 4])
      }
    })
    expect(layers).toEqual(Array.from({ length: 13 }, (_, i) => i))
  })

  it.each([
    ['no ids', []],
    ['an id beyond the vocabulary', [1984]],
    ['a negative id', [-1]],
    ['a fraction', [0.5]],
    ['NaN', [Number.NaN]]
  ])('refuses %s and leaves the session as it was', async (_, ids) => {
    const session = model.createSession()
    await session.append([1, 2])
    expect(await codeOf(session.append(ids))).toBe('ERR_K3_TOKEN_ID')
    expect(session.position).toBe(2)
    await session.step(3)
  })

  it.each([
    ['both a prompt and ids', { prompt: 'a', ids: [1], maxTokens: 1 }],
    ['neither', { maxTokens: 1 }],
    ['zero tokens', { ids: [1], maxTokens: 0 }],
    ['an empty stop text', { ids: [1], maxTokens: 1, stop: [''] }]
  ])('refuses a request with %s', async (_, request) => {
    expect(await codeOf(Promise.resolve(model.generate(request)))).toBe('ERR_K3_REQUEST')
  })

  it('rejects with the reason of an abort, also in the middle of a prompt, and stays usable', async () => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const session = model.createSession()
    const work = session.append(new Array(400).fill(7), {
      signal: controller.signal,
      onProgress: (done) => {
        if (done > 10) controller.abort(reason)
      }
    })
    await expect(work).rejects.toBe(reason)
    expect(await codeOf(session.step(1))).toBe('ERR_K3_SESSION_TORN')
    const result = await model.generate({ ids: raw.prompt_ids, maxTokens: 2 })
    expect(result.ids).toEqual(raw.output_ids.slice(0, 2))
  })

  it('frees a generation that is left early', async () => {
    for await (const part of model.generate({ ids: raw.prompt_ids, maxTokens: 40 })) {
      if (part.type === 'text') break
    }
    expect((await model.generate({ ids: raw.prompt_ids, maxTokens: 1 })).ids).toEqual(
      raw.output_ids.slice(0, 1)
    )
  })

  it('cannot be both iterated and awaited', async () => {
    const generation = model.generate({ ids: raw.prompt_ids, maxTokens: 1 })
    for await (const part of generation) expect(part.type).toBeDefined()
    expect(await codeOf(Promise.resolve(generation))).toBe('ERR_K3_GENERATION_CONSUMED')
  })
})

describe('the logits', () => {
  const prompt = chat.prompt_ids.slice(0, 70)
  let want: Float32Array
  beforeAll(async () => {
    want = await withModel({ threads: 1, isa: 'scalar' }, (model) => model.forward(prompt))
  })

  it.each<ModelOptions>([
    { threads: 1 },
    { threads: 2 },
    { threads: 3, chunkTokens: 7 },
    { threads: 4, chunkTokens: 1 },
    { threads: 2, cacheSlots: 4 },
    { threads: 2, cacheSlots: 5, chunkTokens: 64 },
    { threads: 2, cacheSlots: 37, parts: { policy: 'lfu' } },
    { threads: 2, cacheSlots: 192, parts: { policy: 'layer-lru' } }
  ])('have the same bits with %o as with one scalar thread', async (options) => {
    expect(await withModel(options, (model) => model.forward(prompt))).toEqual(want)
  })

  it('have the same bits in a session that is fed in pieces', async () => {
    await withModel({ threads: 2 }, async (model) => {
      const session = model.createSession()
      await session.append(prompt.slice(0, 13))
      for (const id of prompt.slice(13, 20)) await session.step(id)
      const last = await session.append(prompt.slice(20))
      expect(last).toEqual(want.slice(-model.config.vocabSize))
    })
  })
})

describe('openModel', () => {
  it.each([
    ['ERR_K3_OPTION', { threads: 0 }],
    ['ERR_K3_OPTION', { chunkTokens: 1.5 }],
    ['ERR_K3_OPTION', { layers: 14 }],
    ['ERR_K3_CACHE_SLOTS', { cacheSlots: 3 }],
    ['ERR_ISA_UNSUPPORTED', { isa: 'neon' }]
  ] as const)('refuses with %s the options %o', async (code, options) => {
    expect(await codeOf(openModel(modelDir, options))).toBe(code)
  })

  it('runs only the first layers when asked to', async () => {
    const three = await withModel({ layers: 3 }, async (model) => {
      const seen: number[] = []
      await model.forward([1], { observe: ({ layer }) => seen.push(layer) })
      return seen
    })
    expect(three).toEqual([0, 1, 2])
  })

  it('disposes once, ends work in flight, and refuses later use', async () => {
    const model = await openModel(modelDir)
    const session = model.createSession()
    const disposals: Promise<void>[] = []
    const running = session.append(new Array(400).fill(7), {
      onProgress: (done) => {
        if (done > 10 && disposals.length < 2) disposals.push(model[Symbol.asyncDispose]())
      }
    })
    expect(await codeOf(running)).toBe('ERR_K3_DISPOSED')
    expect(disposals.length).toBe(1)
    await Promise.all([...disposals, model[Symbol.asyncDispose]()])
    expect(await codeOf(session.step(1))).toBe('ERR_K3_SESSION_TORN')
    expect(() => model.createSession()).toThrow(expect.objectContaining({ code: 'ERR_K3_DISPOSED' }))
  })
})
