import { modelDir } from '@k3/demo-model'
import { createExpertCache, policyNames } from '@k3/moe-cache'
import type { Batch } from '@k3/uring'
import { type VectorOps, VectorOpsError } from '@k3/vector-ops'
import { describe, expect, it } from 'vitest'
import type { K3Config } from '../src/config.js'
import { ExpertLookahead } from '../src/expert-lookahead.js'
import { ExpertPredictor, type PredictorParts } from '../src/expert-predictor.js'
import type { ExpertSlots } from '../src/expert-slots.js'
import { openModel } from '../src/index.js'

const IDS = [1, 17, 300, 5, 5, 88, 1024, 9, 9, 17, 300, 2]

describe('the demo model with a lookahead', async () => {
  const open = (options: object) => openModel(modelDir, { threads: 1, chunkTokens: 3, ...options })
  const logitsOf = async (options: object) => {
    await using model = await open(options)
    await using session = model.createSession()
    const rows: number[] = [...(await session.append(IDS))]
    for (const id of IDS) rows.push(...(await session.step(id)))
    return { rows, traffic: model.traffic }
  }
  const want = (await logitsOf({})).rows

  const SIZES = [
    [4, 16],
    [9, 4],
    [9, 16],
    [40, 1]
  ] as const
  it.each(policyNames.flatMap((policy) => SIZES.map((sizes) => [policy, ...sizes] as const)))(
    'has the same bits with %s, %i slots and %i predictions',
    async (policy, cacheSlots, lookahead) => {
      const { rows, traffic } = await logitsOf({
        trunk: 'resident',
        cacheSlots,
        lookahead,
        parts: { policy }
      })
      expect(rows).toEqual(want)
      const { predicted, chosen, usedReads, wastedReads, wastedBytes } = traffic.lookahead
      expect(predicted).toEqual(Array(lookahead).fill(IDS.length * 12))
      for (const count of chosen) expect(count).toBeLessThanOrEqual(IDS.length * 12)
      // with the slots of one token alone there is no room to read ahead
      expect(usedReads + wastedReads > 0).toBe(cacheSlots > 4)
      expect(wastedBytes % Math.max(1, wastedReads)).toBe(0)
    }
  )
})

/** Reads that end when told to, well or not. */
class FakeReads {
  readonly #over = new Map<string, 'well' | 'failed'>()
  readonly began: string[] = []

  end(layer: number, expert: number, how: 'well' | 'failed'): void {
    this.#over.set(`${layer}:${expert}`, how)
  }

  readonly slots = {
    baseOf: () => 0,
    expertBytes: () => 10,
    read: ({ layer, experts }: { layer: number; experts: Int32Array }): Batch => {
      const name = `${layer}:${experts[0]!}`
      this.began.push(name)
      const wait = () => {
        if (this.#over.get(name) !== 'well') throw new Error(`${name} failed`)
      }
      return {
        wait,
        ended: () => this.#over.has(name),
        hurry: () => undefined,
        giveUp: () => undefined
      } as unknown as Batch
    }
  } as unknown as ExpertSlots
}

describe('what became of predictions', () => {
  const lookaheadOf = () => {
    const reads = new FakeReads()
    const cache = createExpertCache({ slots: 12, topK: 2, policy: 'lru' })
    const parts = { cache, slots: reads.slots, reserve: 2, inspect: () => undefined }
    return { reads, lookahead: new ExpertLookahead(parts) }
  }

  it('a read that failed for another layer takes nothing from this one', () => {
    const { reads, lookahead } = lookaheadOf()
    lookahead.predict(1, Int32Array.of(7))
    lookahead.claim(1, Int32Array.of(3))
    lookahead.predict(2, Int32Array.of(7))
    expect(reads.began).toEqual(['1:7', '2:7'])
    // it was given up while the next layer's prediction, of the same number, is on its way
    reads.end(1, 7, 'failed')
    reads.end(2, 7, 'well')
    lookahead.claim(2, Int32Array.of(7))
    expect(lookahead.statistics()).toEqual({
      predicted: [2],
      chosen: [1],
      usedReads: 1,
      wastedReads: 0,
      wastedBytes: 0
    })
  })

  it('a read that failed is neither used nor wasted', () => {
    const { reads, lookahead } = lookaheadOf()
    lookahead.predict(1, Int32Array.of(7, 8, 9))
    reads.end(1, 7, 'failed')
    for (const expert of [8, 9]) reads.end(1, expert, 'well')
    lookahead.claim(1, Int32Array.of(7, 8))
    expect(lookahead.statistics()).toMatchObject({ usedReads: 1, wastedReads: 1, wastedBytes: 10 })
  })
})

describe('a prediction', () => {
  const predictorOf = (route: () => void, expected: number[]) => {
    const ops = { createRouter: () => ({ route }), residualMix: () => undefined, rmsNorm: () => undefined }
    const parts = {
      config: {
        hiddenSize: 4,
        moe: { renormalize: true, routedScale: 1, expertCount: 3 }
      } as unknown as K3Config,
      plan: [{ index: 0, ffn: 'moe' }],
      norms: [{}],
      ops: ops as unknown as VectorOps,
      weights: { linears: () => ({ apply: () => undefined }), vector: () => new Float32Array(3) },
      trunk: { has: () => true },
      count: 1,
      expect: (layer: number) => expected.push(layer)
    }
    return new ExpertPredictor(parts as unknown as PredictorParts)
  }
  const stream = { tokens: 1, eps: 1e-5, sources: () => [] } as never
  const failure = (code: string) => Object.assign(new VectorOpsError('gate', 0, 0, Number.NaN, 0), { code })

  it('is made unless the numbers are not finite, which the layer itself refuses', () => {
    const expected: number[] = []
    predictorOf(() => undefined, expected).predict(0, stream)
    expect(expected).toEqual([0])
    predictorOf(() => {
      throw failure('ERR_VECTOR_OPS_NONFINITE')
    }, expected).predict(0, stream)
    expect(expected).toEqual([0])
  })

  it.each([failure('ERR_VECTOR_OPS_OTHER'), new RangeError('k is 0')])(
    'hides no other failure: %s',
    (error) => {
      const predictor = predictorOf(() => {
        throw error
      }, [])
      expect(() => predictor.predict(0, stream)).toThrow(error)
    }
  )
})
