import { readFileSync } from 'node:fs'
import { expectedFile, modelDir } from '@k3/demo-model'
import { supportedIsas } from '@k3/vector-ops'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GenerationPart } from '../src/generate.js'
import type { Layer } from '../src/interfaces.js'
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

  it('tears no session for ids that were refused while another call on it ran', async () => {
    const session = model.createSession()
    const [ran, refused] = [session.append([1, 2]), session.append([-1])]
    expect(await codeOf(refused)).toBe('ERR_K3_TOKEN_ID')
    expect(await ran).toEqual((await model.forward([1, 2])).slice(-model.config.vocabSize))
    await session.step(3)
    expect(session.position).toBe(3)
  })

  it('refuses a call that waited behind one that tore the session', async () => {
    const controller = new AbortController()
    const session = model.createSession()
    const work = session.append(new Array(100).fill(7), {
      signal: controller.signal,
      onProgress: () => controller.abort()
    })
    const waiting = session.step(1)
    expect(await codeOf(work)).not.toBe('resolved')
    expect(await codeOf(waiting)).toBe('ERR_K3_SESSION_TORN')
  })

  it('refuses to fork a session whose layers are at different positions', async () => {
    const session = model.createSession()
    const codes = new Set<unknown>()
    const onProgress = () => {
      try {
        session.fork()
      } catch (error) {
        codes.add((error as { code?: string }).code)
      }
    }
    const logits = await session.append(raw.prompt_ids, { onProgress })
    expect([...codes]).toEqual(['ERR_K3_SESSION_BUSY'])
    expect(await session.fork().step(5)).toEqual(await session.step(5))
    expect(logits).toEqual((await model.forward(raw.prompt_ids)).slice(-model.config.vocabSize))
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
    ['an empty stop text', { ids: [1], maxTokens: 1, stop: [''] }],
    ['a stop text that is no string', { ids: [1], maxTokens: 1, stop: [5] }],
    ['a stop text without its list', { ids: [1], maxTokens: 1, stop: 'x' }],
    ['a prompt that is no string', { prompt: 5, maxTokens: 1 }],
    ['a sampler that cannot pick', { ids: [1], maxTokens: 1, sampler: {} }],
    ['no sampler in its place', { ids: [1], maxTokens: 1, sampler: null }],
    ['a signal that is none', { ids: [1], maxTokens: 1, signal: {} }],
    ['a misspelt field', { ids: [1], maxTokens: 1, stops: ['x'] }],
    ['nothing in it', null]
  ])('refuses a request with %s', async (_, request) => {
    expect(await codeOf(Promise.resolve(model.generate(request as never)))).toBe('ERR_K3_REQUEST')
  })

  it.each([-1, 1984, 0.5, Number.NaN, '1', undefined])('refuses the pick %s of a sampler', async (id) => {
    const request = {
      ids: [1],
      maxTokens: 1,
      sampler: { begin: () => undefined, accept: () => undefined, pick: () => id as number }
    }
    expect(await codeOf(Promise.resolve(model.generate(request)))).toBe('ERR_K3_TOKEN_ID')
  })

  it.each([undefined, null, 5, {}])('refuses %s in place of ids', async (ids) => {
    expect(await codeOf(model.forward(ids as never))).toBe('ERR_K3_TOKEN_ID')
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

  it('ends the run of a prompt that is left early', async () => {
    let layers = 0
    const count = (layer: Layer): Layer => ({
      createState: () => layer.createState(),
      forward: (...run) => {
        layers++
        layer.forward(...run)
      }
    })
    await withModel({ chunkTokens: 1, parts: { layer: count } }, async (counted) => {
      for await (const part of counted.generate({ ids: new Array(400).fill(7), maxTokens: 1 })) {
        if (part.type === 'progress') break
      }
      await counted.createSession().step(1)
      expect(layers).toBeLessThan(400 * 13)
    })
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
    { threads: 2, cacheSlots: 192, parts: { policy: 'layer-lru' } },
    // each instruction set with each number of threads and each of four chunk sizes; scripts/bit-matrix.mjs has all pairs
    ...supportedIsas().flatMap((isa, i) =>
      [1, 2, 3, 4].map((threads) => ({ isa, threads, chunkTokens: [1, 2, 7, 64][(threads + i) % 4]! }))
    )
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

describe('logits with int8 activations of the experts', () => {
  const expertActivations = 'int8'
  const prompt = chat.prompt_ids.slice(0, 20)

  it('have one set of bits of their own, close to the exact ones', async () => {
    const logits = (options: ModelOptions) =>
      withModel(options, (model) => {
        expect(model.expertActivations).toBe(options.expertActivations ?? 'exact')
        return model.forward(prompt)
      })
    const exact = await logits({ threads: 2 })
    const want = await logits({ threads: 1, isa: 'scalar', expertActivations })
    const distance = Math.hypot(...exact.map((logit, i) => logit - want[i]!)) / Math.hypot(...exact)
    expect(distance).toBeGreaterThan(0)
    expect(distance).toBeLessThan(0.05)
    for (const options of [
      { threads: 3, chunkTokens: 7 },
      { threads: 2, cacheSlots: 5 },
      { threads: 1, chunkTokens: 1 }
    ])
      expect(await logits({ ...options, expertActivations })).toEqual(want)
  })
})

describe('openModel', () => {
  it.each([
    ['ERR_K3_OPTION', { threads: 0 }],
    ['ERR_K3_OPTION', { chunkTokens: 1.5 }],
    ['ERR_K3_OPTION', { layers: 14 }],
    ['ERR_K3_OPTION', { expertActivations: 'fp8' }],
    ['ERR_K3_OPTION', { expertActivations: null }],
    ['ERR_K3_OPTION', { thread: 2 }],
    ['ERR_K3_OPTION', null],
    ['ERR_K3_OPTION', { parts: 5 }],
    ['ERR_K3_OPTION', { parts: { expert: () => null } }],
    ['ERR_K3_OPTION', { parts: { policy: null } }],
    ['ERR_K3_OPTION', { parts: { policy: 'belady' } }],
    ['ERR_K3_OPTION', { parts: { policy: () => null } }],
    ['ERR_K3_OPTION', { parts: { pressure: null } }],
    ['ERR_K3_OPTION', { parts: { experts: {} } }],
    ['ERR_K3_OPTION', { parts: { weights: null } }],
    ['ERR_K3_OPTION', { parts: { layer: 'kda' } }],
    ['ERR_K3_CACHE_SLOTS', { cacheSlots: 3 }],
    ['ERR_ISA_UNSUPPORTED', { isa: 'neon' }]
  ] as const)('refuses with %s the options %o', async (code, options) => {
    expect(await codeOf(openModel(modelDir, options as never))).toBe(code)
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
