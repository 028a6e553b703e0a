import { modelDir } from '@k3/demo-model'
import { beforeAll, describe, expect, it } from 'vitest'
import { openCheckpoint } from '../src/checkpoint/open-checkpoint.js'
import type { Checkpoint } from '../src/checkpoint/types.js'
import { type MemoryBudget, planMemory } from '../src/memory-plan.js'

let checkpoint: Checkpoint
beforeAll(async () => {
  checkpoint = await openCheckpoint(modelDir)
})

const budget: MemoryBudget = { availableBytes: 1e9, chunkTokens: 64, contextTokens: 4096, cacheSlots: null }
const slotsWith = (change: Partial<MemoryBudget>) =>
  planMemory(checkpoint, { ...budget, ...change }).cacheSlots
const codeOf = (change: Partial<MemoryBudget>) => {
  try {
    slotsWith(change)
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'accepted'
}

describe('planMemory', () => {
  it('accounts for every resident byte', () => {
    const plan = planMemory(checkpoint, budget)
    expect(plan.terms.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(plan.residentBytes)
    expect(plan.terms.map(({ component }) => component)).toEqual([
      'KDA states',
      'MLA latents',
      'scratch',
      'expert cache'
    ])
    const [kda, mla] = plan.terms
    expect(kda!.bytes).toBe(9 * 4 * (4 * 32 * 32 + 3 * 3 * 128))
    expect(mla!.bytes).toBe(4 * 4096 * 4 * 80)
  })

  it('keeps every expert when memory allows, and never more', () => {
    expect(slotsWith({})).toBe(192)
    expect(slotsWith({ availableBytes: 1e15 })).toBe(192)
  })

  it('gives less when there is less, down to the experts of one token', () => {
    const fixed = planMemory(checkpoint, { ...budget, cacheSlots: 4 }).residentBytes
    expect(slotsWith({ availableBytes: fixed })).toBe(4)
    expect(codeOf({ availableBytes: fixed - 1 })).toBe('ERR_K3_MEMORY')
    expect(slotsWith({ contextTokens: 8, availableBytes: 1e7 })).toBeGreaterThanOrEqual(
      slotsWith({ availableBytes: 1e7 })
    )
  })

  it('takes the number of slots that is asked for, up to one for every expert', () => {
    expect(slotsWith({ cacheSlots: 4 })).toBe(4)
    expect(slotsWith({ cacheSlots: 1000 })).toBe(192)
  })

  it.each([3, 0, -1, 4.5, Number.NaN])('refuses %d slots by name', (cacheSlots) => {
    expect(codeOf({ cacheSlots })).toBe('ERR_K3_CACHE_SLOTS')
  })
})
