import { readFileSync } from 'node:fs'
import { configText, geometryOf } from '@k3/synth'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../src/config.js'
import { ASSUMED_SPEED } from '../src/memory/forecast.js'
import { type MemoryPlan, openRequest, type PlanRequest, planMemory } from '../src/memory/plan.js'

const released = parseConfig(
  readFileSync(new URL('../../../docs/spec/config.k3.json', import.meta.url), 'utf8'),
  'config.k3.json'
)
const synthetic = (preset: string, settings: readonly string[] = []) =>
  parseConfig(configText(geometryOf(preset, settings)), preset)

const machine = { ...ASSUMED_SPEED, usable: { bytes: 1e15, source: 'the test' } }
const planOf = (change: Partial<PlanRequest> = {}, config = released): MemoryPlan =>
  planMemory(config, machine, { ...openRequest(config), threads: 2, ...change })
const refusalOf = (change: Partial<PlanRequest>, config = released) => {
  try {
    planOf(change, config)
  } catch (error) {
    return error as { code: string; need: number; message: string }
  }
  throw new Error('nothing was refused')
}
const bytesOf = (plan: MemoryPlan, component: string) =>
  plan.terms.find((term) => term.component === component)!.bytes
const readBytes = ({ forecast }: MemoryPlan) =>
  forecast.trunkReadBytes + forecast.headReadBytes + forecast.expertReadBytes

describe('planMemory for the released model', () => {
  it('has a line for every component', () => {
    const plan = planOf({ ram: 8e9 })
    expect(plan.terms.map(({ component }) => component)).toEqual([
      'Node',
      'headers and vocabulary',
      'vectors',
      'KDA states',
      'MLA latents',
      'scratch',
      'prefix cache',
      'reserve',
      'trunk',
      'trunk ring',
      'head and embedding',
      'expert cache'
    ])
    for (const { reason } of plan.terms) expect(reason).not.toBe('')
    expect(bytesOf(plan, 'KDA states')).toBe(69 * 4 * (96 * 128 * 128 + 3 * 3 * 12_288))
    expect(bytesOf(plan, 'MLA latents')).toBe(24 * plan.contextTokens * 4 * 576)
  })

  it('runs in 4.4 GB, and says so when it is given less', () => {
    const { smallestBytes } = planOf({ ram: 8e9 })
    expect(smallestBytes).toBeGreaterThan(4.2e9)
    expect(smallestBytes).toBeLessThan(4.4e9)
    const { code, need, message } = refusalOf({ ram: 4e9 })
    expect([code, need]).toEqual(['ERR_K3_MEMORY', smallestBytes])
    const named = Number(/the smallest that works is ([\d.]+) GB/.exec(message)![1])
    expect(planOf({ ram: Math.round(named * 1e9) }).trunk.mode).toBe('stream')
  })

  it('names what is needed even when no budget there is has it', () => {
    for (const prefixCacheBytes of [4e15, Number.MAX_SAFE_INTEGER]) {
      const { code, need } = refusalOf({ ram: 3e15, prefixCacheBytes })
      expect(code).toBe('ERR_K3_MEMORY')
      expect(need).toBeGreaterThan(prefixCacheBytes + 4e9)
    }
  })

  it('streams what does not fit, and pins what does', () => {
    const plan = planOf({ ram: 'desktop' })
    const { mode, pinnedLayers, ringLayers, headRows } = plan.trunk
    expect([mode, ringLayers]).toEqual(['stream', 2])
    expect(pinnedLayers.length).toBeGreaterThan(15)
    expect(new Set(pinnedLayers).size).toBe(pinnedLayers.length)
    // spread over the whole depth
    expect(pinnedLayers.filter((layer) => layer < 47).length / pinnedLayers.length).toBeCloseTo(0.5, 0)
    expect(headRows).toBe(163_840)
    expect(bytesOf(plan, 'trunk ring')).toBeGreaterThan(2 * 1_267_744_256)
    expect(planOf({ ram: 4.5e9 }).trunk.headRows).toBeLessThan(163_840)
  })

  it('gives the trunk everything before the experts, and the experts what is left then', () => {
    expect(planOf({ ram: 'workstation-96' }).cacheSlots).toBeLessThan(100)
    // the embedding table is worth less than the experts its memory holds, unless they are never found
    expect(planOf({ ram: 'server' }).trunk.mode).toBe('resident')
    expect(planOf({ ram: 'server', policy: 'lru' }).trunk.mode).toBe('mmap')
    expect(planOf({ ram: 'server' }).cacheSlots).toBeGreaterThan(300)
    expect(planOf({ ram: 1.8e12 }).cacheSlots).toBe(82_432)
    expect(planOf({ ram: 1.8e12 }).plannedBytes).toBeLessThan(1.6e12)
  })

  it('reads the whole trunk in the smallest budget and the experts alone in a large one', () => {
    const small = planOf({ ram: 4.4e9 }).forecast
    expect(small.trunkReadBytes).toBeGreaterThan(107e9)
    expect(small.trunkReadBytes).toBeLessThan(109e9)
    expect(small.headReadBytes).toBeGreaterThan(2.348e9)
    expect(small.expertReadBytes).toBeGreaterThan(0.99 * 1472 * 17_547_264)
    expect(planOf({ ram: 4.4e9, policy: 'lru' }).forecast.expertReadBytes).toBe(1472 * 17_547_264)
    expect(small.bindsOn).toBe('disk')
    const large = planOf({ ram: 'server' }).forecast
    expect([large.trunkReadBytes, large.headReadBytes]).toEqual([0, 0])
    expect(planOf({ ram: 1.8e12 }).forecast.bindsOn).not.toBe('disk')
  })

  it('leaves room for what is asked', () => {
    const open = planOf({ ram: 8e9, prefixCacheBytes: 0 })
    expect(bytesOf(planOf({ ram: 8e9, prefixCacheBytes: 1e9 }), 'prefix cache')).toBe(1e9)
    expect(planOf({ ram: 8e9, prefixCacheBytes: null }).prefixCacheBytes).toBe(0.5e9)
    expect(bytesOf(planOf({ ram: 8e9, speculates: true }), 'KDA states')).toBe(
      2 * bytesOf(open, 'KDA states')
    )
    expect(planOf({ ram: 8e9, contextTokens: 20_000 }).contextTokens).toBe(20_000)
    expect(planOf({ ram: 8e9, chunkTokens: 500 }).chunkTokens).toBe(500)
    expect(planOf({ ram: 8e9, cacheSlots: 100 }).cacheSlots).toBe(100)
    expect(open.chunkTokens).toBeGreaterThan(planOf({ ram: 5e9 }).chunkTokens)
  })

  it('expects of each policy what it finds', () => {
    const hits = (policy: PlanRequest['policy']) => {
      const { forecast } = planOf({ ram: 32e9, cacheSlots: 1030, policy })
      expect(forecast.policy).toBe(policy)
      expect(forecast.expertReadBytes).toBe(Math.round((1 - forecast.hitRate) * 1472 * 17_547_264))
      return forecast.hitRate
    }
    expect(hits('lru')).toBe(0)
    expect(hits('next-use')).toBeCloseTo(0.249, 3)
    expect(openRequest(released).policy).toBe('next-use')
    // whatever the policy finds, a byte of trunk is worth more: the slots get less than a layer
    expect(planOf({ ram: 'workstation-96' }).cacheSlots * 17_550_000).toBeLessThan(1.3e9)
  })

  it('takes a placement that is spelled out', () => {
    const trunk = { mode: 'stream' as const, pinnedLayers: [3, 4], ringLayers: 3, headRows: 1000 }
    const plan = planOf({ ram: 32e9, trunk })
    expect(plan.trunk).toBe(trunk)
    expect(plan.forecast.trunkReadBytes).toBe(
      planOf({ ram: 4.4e9 }).forecast.trunkReadBytes - bytesOf(plan, 'trunk')
    )
    expect(refusalOf({ ram: 6e9, trunk }).code).toBe('ERR_K3_MEMORY')
    expect(planOf({ ram: 128e9, trunk: 'resident' }).trunk.pinnedLayers).toHaveLength(93)
    expect(refusalOf({ ram: 64e9, trunk: 'mmap' }).need).toBeGreaterThan(113e9)
  })
})

describe('planMemory refuses', () => {
  it.each([15, 0, -1, 16.5, Number.NaN])('%d slots, which hold no token', (cacheSlots) => {
    expect(refusalOf({ cacheSlots })).toMatchObject({
      code: 'ERR_K3_CACHE_SLOTS',
      message: expect.stringMatching(/a whole number of slots, at least 16, got /)
    })
  })

  it.each(['belady', 'toString', '', null, 3])('%s as a policy', (policy) => {
    expect(refusalOf({ ram: 8e9, policy: policy as 'lru' })).toMatchObject({
      code: 'ERR_K3_OPTION',
      field: 'policy',
      have: policy
    })
  })

  it('more slots than there are experts, in the layers that run', () => {
    expect(refusalOf({ ram: 1.8e12, cacheSlots: 82_433 })).toMatchObject({
      code: 'ERR_K3_CACHE_SLOTS',
      field: 'cacheSlots',
      have: 82_433,
      need: 82_432
    })
    expect(planOf({ ram: 1.8e12, cacheSlots: 82_432 }).cacheSlots).toBe(82_432)
    expect(refusalOf({ layers: 3, cacheSlots: 2 * 896 + 1 })).toMatchObject({ need: 2 * 896 })
    expect(refusalOf({ layers: 1, cacheSlots: 16 }).message).toContain('have 0 experts')
  })

  it.each([0, -1, 1.5, Number.NaN, '8GB', 'toaster', null])('%s as a budget', (ram) => {
    expect(refusalOf({ ram: ram as 'auto' }).code).toBe('ERR_K3_OPTION')
  })

  it('more than the machine has, with what would work', () => {
    const laptop = { ...machine, usable: { bytes: 6e9, source: 'MemAvailable' } }
    const plan = (ram: PlanRequest['ram']) =>
      planMemory(released, laptop, { ...openRequest(released), threads: 2, ram })
    expect(() => plan('laptop')).toThrow(
      /8\.000 GB \(the preset laptop\) is more than .* 6\.000 GB by MemAvailable; the smallest that works is 4\.3/
    )
    expect(plan('auto').budget.bytes).toBe(6e9 - 6e9 / 16)
    expect(plan('max').budget.bytes).toBe(6e9 - 128e6)
  })

  it('a budget just short of what works or just above what there is, in figures that differ', () => {
    const { smallestBytes } = planOf({ ram: 8e9 })
    const [short, works] = refusalOf({ ram: smallestBytes - 1 })
      .message.match(/[\d.]+(?= GB)/g)!
      .map(Number)
    expect(short).toBeLessThan(works!)
    const laptop = { ...machine, usable: { bytes: 7_999_999_999, source: 'MemAvailable' } }
    expect(() => planMemory(released, laptop, { ...openRequest(released), threads: 2, ram: 8e9 })).toThrow(
      /8\.000 GB \(as given\) is more than .* 7\.999 GB by MemAvailable/
    )
  })

  it('slots and a budget that contradict each other', () => {
    const { code, need } = refusalOf({ ram: 8e9, cacheSlots: 5000 })
    expect(code).toBe('ERR_K3_MEMORY')
    expect(planOf({ ram: need, cacheSlots: 5000 }).cacheSlots).toBe(5000)
  })
})

const configs = fc.oneof(
  fc.constant(released),
  fc.constantFrom('tiny', 'tiny-93', 'slim-4', 'wide-4').map((preset) => synthetic(preset)),
  fc
    .record({ layers: fc.integer({ min: 2, max: 30 }), experts: fc.integer({ min: 4, max: 64 }) })
    .map(({ layers, experts }) =>
      synthetic('tiny', [`num_hidden_layers=${layers}`, `num_experts=${experts}`])
    )
)
const wishes = fc.record({
  threads: fc.integer({ min: 1, max: 64 }),
  contextTokens: fc.option(fc.integer({ min: 1, max: 100_000 })),
  chunkTokens: fc.option(fc.integer({ min: 1, max: 512 })),
  trunk: fc.option(fc.constantFrom('mmap' as const, 'resident' as const, 'stream' as const)),
  prefixCacheBytes: fc.option(fc.integer({ min: 0, max: 5_000_000_000 })),
  speculates: fc.boolean()
})

describe('any plan', () => {
  it('stays within its budget, and its smallest budget is the edge', () => {
    fc.assert(
      fc.property(configs, wishes, fc.double({ min: 0, max: 3, noNaN: true }), (config, wish, decades) => {
        const { smallestBytes } = planOf({ ...wish, ram: 1e13 }, config)
        const ram = Math.floor(smallestBytes * 10 ** decades)
        const plan = planOf({ ...wish, ram }, config)
        expect(plan.plannedBytes).toBeLessThanOrEqual(ram)
        for (const { bytes } of plan.terms) expect(bytes).toBeGreaterThanOrEqual(0)
        expect(planOf({ ...wish, ram: smallestBytes }, config).plannedBytes).toBeLessThanOrEqual(
          smallestBytes
        )
        expect(refusalOf({ ...wish, ram: smallestBytes - 1 }, config).need).toBe(smallestBytes)
      }),
      { numRuns: 150 }
    )
  })

  it('never reads more with a larger budget', () => {
    fc.assert(
      fc.property(configs, wishes, fc.double({ min: 0, max: 3, noNaN: true }), (config, wish, decades) => {
        const { smallestBytes } = planOf({ ...wish, ram: 1e13 }, config)
        const ram = Math.floor(smallestBytes * 10 ** decades)
        const [less, more] = [
          planOf({ ...wish, ram }, config),
          planOf({ ...wish, ram: Math.ceil(ram * 1.05) }, config)
        ]
        expect(readBytes(more)).toBeLessThanOrEqual(readBytes(less) + 1)
        expect(more.contextTokens).toBeGreaterThanOrEqual(less.contextTokens)
        expect(more.chunkTokens).toBeGreaterThanOrEqual(less.chunkTokens)
      }),
      { numRuns: 150 }
    )
  })
})
