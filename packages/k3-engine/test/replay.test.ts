import { rmSync } from 'node:fs'
import { modelDir } from '@k3/demo-model'
import { policyNames } from '@k3/moe-cache'
import { RoutingTrace, replay } from '@k3/moe-cache/traces'
import { afterAll, describe, expect, it } from 'vitest'
import { openModel } from '../src/index.js'
import type { Layer } from '../src/interfaces.js'
import { LatentMoe } from '../src/layers.js'
import type { Model } from '../src/model.js'
import type { CustomParts, ModelOptions } from '../src/model-options.js'
import { writeSyntheticModel } from './synthetic-model.js'

/** Writes down what the router of a layer chose, after the layer has run. */
class Recorded implements Layer {
  readonly #layer: LatentMoe
  readonly #index: number
  readonly #trace: RoutingTrace

  constructor(layer: LatentMoe, index: number, trace: RoutingTrace) {
    this.#layer = layer
    this.#index = index
    this.#trace = trace
  }

  createState(): null {
    return this.#layer.createState()
  }

  forward(...[x, state, out, tokens]: Parameters<Layer['forward']>): void {
    this.#layer.forward(x, state, out, tokens)
    const { chosen } = this.#layer.routing
    this.#trace.record(this.#index, chosen.slice(0, tokens * this.#trace.topK), tokens)
  }
}

/** Hits and misses of a real run with these options, and what replay makes of its trace. */
const compare = async (
  dir: string,
  topK: number,
  options: ModelOptions,
  run: (model: Model) => Promise<unknown>
) => {
  const trace = new RoutingTrace(topK)
  const parts: CustomParts = {
    ...options.parts,
    layer: (layer, { index }) => (layer instanceof LatentMoe ? new Recorded(layer, index, trace) : layer)
  }
  await using model = await openModel(dir, { threads: 1, ...options, parts })
  await run(model)
  const { hits, misses } = model.traffic
  const policy = options.parts?.policy === undefined ? 'next-use' : options.parts.policy
  const predicted = replay(trace, { slots: model.memory.cacheSlots, policy })
  return { real: { hits, misses }, predicted: { hits: predicted.hits, misses: predicted.misses } }
}

const prompt = (length: number, vocab: number) => Array.from({ length }, (_, i) => (37 * i + 11) % vocab)

/** A prompt, then a few tokens, a second prompt, and a few more. */
const conversation = (vocab: number) => async (model: Model) => {
  const session = model.createSession()
  for (const length of [40, 21]) {
    await session.append(prompt(length, vocab))
    for (const id of prompt(12, vocab)) await session.step(id)
  }
  await session.append(prompt(3, vocab))
}

describe('hits and misses of a real run are those of the replay of its trace', () => {
  it.each(
    policyNames.flatMap((policy) => [4, 5, 24, 61, 96, 192].map((cacheSlots) => ({ policy, cacheSlots })))
  )('on the demo model with $policy and $cacheSlots slots', async ({ policy, cacheSlots }) => {
    const { real, predicted } = await compare(
      modelDir,
      4,
      { cacheSlots, chunkTokens: 16, parts: { policy } },
      conversation(1000)
    )
    expect(real.hits + real.misses).toBeGreaterThan(0)
    expect(real).toEqual(predicted)
  })

  it.each([1, 7, 64])('on the demo model with %i tokens of a prompt at a time', async (chunkTokens) => {
    const { real, predicted } = await compare(
      modelDir,
      4,
      { cacheSlots: 50, chunkTokens },
      conversation(1000)
    )
    expect(real).toEqual(predicted)
  })

  const tiny = writeSyntheticModel('tiny', 5n)
  afterAll(() => rmSync(tiny, { recursive: true }))

  it.each([4, 17, 40, 100])('on the tiny model with %i slots', async (cacheSlots) => {
    const { real, predicted } = await compare(tiny, 4, { cacheSlots, chunkTokens: 16 }, conversation(200))
    expect(real.hits + real.misses).toBeGreaterThan(0)
    expect(real).toEqual(predicted)
  })
})
