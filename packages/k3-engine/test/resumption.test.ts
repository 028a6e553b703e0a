import { rmSync } from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GenerationRequest } from '../src/generation-request.js'
import type { TokenConstraint } from '../src/interfaces.js'
import type { Model } from '../src/model.js'
import { openModel } from '../src/open-model.js'
import { createSampler } from '../src/sampler.js'
import type { Session } from '../src/session.js'
import { PrefixCache } from '../src/sessions.js'
import { demoCase, temporaryFolder } from './demo-cases.js'
import { writeSyntheticModel } from './synthetic-model.js'

const { prompt, output } = demoCase('chat-08')
const raw = demoCase('raw-01').prompt
// what repeats itself gives drafts; the numbers between do not
const noise = Array.from({ length: 12 }, (_, i) => (i * i * 37 + 11) % 256)
const repeating = [...noise, 7, 8, 9, 10, ...noise, 7, 8, 9, 10, ...noise, 7, 8]
const folder = temporaryFolder()
const TOKENS = 12

const samplers = {
  greedy: () => undefined,
  sampled: () => createSampler({ temperature: 1.2, topP: 0.95, seed: 9, frequencyPenalty: 0.1 })
}

/** Only these two may come, so that a model which babbles repeats itself: some drafts come true, some do not. */
const twoTokens = (vocab: number): TokenConstraint => {
  const words = new Uint32Array(Math.ceil(vocab / 32))
  words[0] = (1 << 7) | (1 << 8)
  return { mask: () => words, accept: () => undefined }
}

/** Runs the prompt, then generates; what came out and the logits of every step, from which it was chosen. */
const generate = async (model: Model, request: Omit<GenerationRequest, 'maxTokens'>) => {
  const settings = { maxTokens: TOKENS, logprobs: 3 }
  const { ids, logprobs, speculation, reusedTokens } = await model.generate({ ...request, ...settings })
  return { run: { ids, logprobs }, speculation, reusedTokens }
}

/** Every number a session carries that shows outside: its ids, and the bits of its logits and of those that follow. */
const bitsOf = async (session: Session) => ({
  ids: [...session.ids],
  logits: session.logits,
  next: await session.fork().append([3, 1, 4])
})

describe.each(['tiny', 'tiny-93', 'demo'] as const)('on %s', { timeout: 120_000 }, (name) => {
  const ids = name === 'demo' ? [...prompt, ...output, ...prompt] : repeating
  let model: Model
  let dir: string
  beforeAll(async () => {
    dir = name === 'demo' ? modelDir : writeSyntheticModel(name, 7n)
    model = await openModel(dir, { threads: 1, chunkTokens: 16 })
  }, 60_000)
  afterAll(async () => {
    await model[Symbol.asyncDispose]()
    if (dir !== modelDir) rmSync(dir, { recursive: true })
  })

  /** What the demo model answers again, and what it would go on with otherwise; what a constraint makes a repetition. */
  const echoes = (): { readonly ids: number[]; readonly constraint?: TokenConstraint }[] =>
    name === 'demo'
      ? [{ ids }, { ids: [...raw, 300, 301, 302, ...raw] }]
      : [{ ids: [...ids, ...ids.slice(-20)], constraint: twoTokens(model.config.vocabSize) }]

  describe.each(Object.entries(samplers))('%s, the bits are those of a run from scratch', (_, sampler) => {
    let scratchRun: ReturnType<typeof generate>
    beforeAll(async () => {
      scratchRun = generate(model, { ids, sampler: sampler() })
    })
    const file = path.join(folder, `${name}.k3s`)

    it('after save and load, in a model opened otherwise', async () => {
      const session = model.createSession()
      await session.append(ids.slice(0, 21))
      await session.append(ids.slice(21))
      await session.save(file)
      const other = await openModel(dir, { threads: 2, isa: 'scalar', chunkTokens: 5 })
      const loaded = await other.loadSession(file)
      const resumed = await generate(other, { session: loaded, ids: [], sampler: sampler() })
      const scratch = await scratchRun
      expect(resumed.run).toEqual(scratch.run)
      expect(resumed.reusedTokens).toBe(ids.length)
      const whole = model.createSession()
      await whole.append([...ids, ...scratch.run.ids.slice(0, -1)])
      expect(await bitsOf(loaded)).toEqual(await bitsOf(whole))
      await other[Symbol.asyncDispose]()
    })

    it('after a fork, on both sides of it', async () => {
      const session = model.createSession()
      await session.append(ids)
      const fork = session.fork()
      const scratch = await scratchRun
      const detour = await generate(model, { session: fork, ids: [5, 6], sampler: sampler() })
      const straight = await generate(model, { session, ids: [], sampler: sampler() })
      expect(straight.run).toEqual(scratch.run)
      expect(detour.run).toEqual((await generate(model, { ids: [...ids, 5, 6], sampler: sampler() })).run)
    })

    it('with drafts that are accepted and drafts that are not', async () => {
      const sum = { drafted: 0, accepted: 0 }
      for (const { ids, constraint } of echoes()) {
        const scratch = await generate(model, { ids, sampler: sampler(), constraint })
        const whole = model.createSession()
        await whole.append([...ids, ...scratch.run.ids.slice(0, -1)])
        for (const speculate of [3, 32, 'auto'] as const) {
          const session = model.createSession()
          const fast = await generate(model, { session, ids, sampler: sampler(), constraint, speculate })
          expect(fast.run).toEqual(scratch.run)
          expect(await bitsOf(session)).toEqual(await bitsOf(whole))
          sum.drafted += fast.speculation!.drafted
          sum.accepted += fast.speculation!.accepted
        }
      }
      expect(sum.accepted).toBeGreaterThan(0)
      expect(sum.drafted).toBeGreaterThan(sum.accepted)
    })

    it('with the beginning taken from a prefix cache, also from its snapshots within a prompt', async () => {
      const prefixCache = new PrefixCache(model, { maxBytes: 1 << 28, interval: 8 })
      const first = await generate(model, { ids, sampler: sampler(), prefixCache })
      expect(first.run).toEqual((await scratchRun).run)
      const turns = [
        { ids: [...ids, ...first.run.ids, 11, 12], least: ids.length + TOKENS - 1 },
        { ids: [...ids.slice(0, 30), 99, 98], least: 24 }
      ]
      for (const turn of turns) {
        const scratch = await generate(model, { ids: turn.ids, sampler: sampler() })
        const reused = await generate(model, { ids: turn.ids, sampler: sampler(), prefixCache })
        expect(reused.run).toEqual(scratch.run)
        expect(reused.reusedTokens).toBe(turn.least)
      }
    })
  })
})
