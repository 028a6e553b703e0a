import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { describe, expect, it } from 'vitest'
import { CacheGovernor, type PressureReading, pressureReader } from '../src/memory/pressure.js'
import { openModel } from '../src/open-model.js'

const QUIET: PressureReading = { freeBytes: 50e9, stalledPercent: 0 }
const STALLED: PressureReading = { freeBytes: 50e9, stalledPercent: 30 }
const BOUNDS = { leastSlots: 16, plannedSlots: 1600, slotBytes: 17.5e6 }

/** Slots after so many equal readings. */
const after = (governor: CacheGovernor, slots: number, reading: PressureReading, times: number): number => {
  let now = slots
  for (let i = 0; i < times; i++) now = governor.next(now, reading)
  return now
}

describe('CacheGovernor', () => {
  it('leaves a cache alone while there is memory', () => {
    expect(after(new CacheGovernor(BOUNDS), 1600, QUIET, 50)).toBe(1600)
    expect(after(new CacheGovernor(BOUNDS), 1600, { freeBytes: 300e6, stalledPercent: 5 }, 50)).toBe(1600)
  })

  it('shrinks while somebody waits for memory, to the least and no further', () => {
    const governor = new CacheGovernor(BOUNDS)
    expect(governor.next(1600, STALLED)).toBe(1600 - 198)
    expect(after(governor, 1600, STALLED, 100)).toBe(16)
  })

  it('gives what is missing at once', () => {
    const governor = new CacheGovernor({ ...BOUNDS, plannedSlots: 100 })
    expect(governor.next(100, { freeBytes: 96e6 - 20 * 17.5e6, stalledPercent: 0 })).toBe(80)
  })

  it('grows back after eight quiet readings, step by step, to the plan and no further', () => {
    const governor = new CacheGovernor(BOUNDS)
    expect(after(governor, 200, QUIET, 7)).toBe(200)
    expect(governor.next(200, QUIET)).toBe(300)
    expect(governor.next(300, QUIET)).toBe(300)
    expect(after(governor, 300, QUIET, 200)).toBe(1600)
  })

  it('does not grow into the memory that is short, nor after one quiet moment', () => {
    const governor = new CacheGovernor(BOUNDS)
    expect(after(governor, 200, { freeBytes: 1e9, stalledPercent: 0 }, 50)).toBe(200)
    expect(after(governor, 1600, { freeBytes: 128e6, stalledPercent: 0 }, 50)).toBe(1600)
    let slots = 200
    for (let i = 0; i < 40; i++)
      slots = governor.next(slots, i % 7 === 6 ? { ...QUIET, stalledPercent: 2 } : QUIET)
    expect(slots).toBe(200)
  })
})

describe('pressureReader', () => {
  it('reads PSI and MemAvailable', () => {
    const root = mkdtempSync(path.join(tmpdir(), 'k3-pressure-'))
    mkdirSync(path.join(root, 'proc/pressure'), { recursive: true })
    writeFileSync(path.join(root, 'proc/meminfo'), 'MemTotal: 2000 kB\nMemAvailable: 1000 kB\n')
    expect(pressureReader(root)()).toEqual({ freeBytes: 1_024_000, stalledPercent: 0 })
    const psi =
      'some avg10=12.34 avg60=0.00 avg300=0.00 total=1\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=1\n'
    writeFileSync(path.join(root, 'proc/pressure/memory'), psi)
    expect(pressureReader(root)().stalledPercent).toBe(12.34)
    rmSync(root, { recursive: true })
    const here = pressureReader()()
    expect(here.freeBytes).toBeGreaterThan(0)
    expect(here.stalledPercent).toBeGreaterThanOrEqual(0)
  })
})

describe('a model under pressure', () => {
  const IDS = [1, 17, 300, 5, 5, 88, 1024, 9, 9, 17, 300, 2]
  const logitsOf = async (pressure: (token: number) => PressureReading, lookahead: number) => {
    let token = 0
    const parts = { pressure: () => pressure(token++) }
    await using model = await openModel(modelDir, { threads: 1, cacheSlots: 96, lookahead, parts })
    await using session = model.createSession()
    const rows: number[] = []
    const slots: number[] = []
    for (const id of [...IDS, ...IDS, ...IDS]) {
      rows.push(...(await session.step(id)))
      slots.push(model.cacheSlots)
    }
    return { rows, slots, ...model.traffic }
  }

  it.each([0, 5])(
    'keeps its bits while its cache shrinks and grows back, lookahead %d',
    async (lookahead) => {
      const calm = await logitsOf(() => QUIET, lookahead)
      const squeezed = await logitsOf((token) => (token < 12 ? STALLED : QUIET), lookahead)
      expect(squeezed.rows).toEqual(calm.rows)
      expect(new Set(calm.slots)).toEqual(new Set([96]))
      expect(Math.min(...squeezed.slots)).toBeLessThan(30)
      expect(squeezed.slots.at(-1)).toBeGreaterThan(Math.min(...squeezed.slots))
      expect(squeezed.misses).toBeGreaterThan(calm.misses)
    }
  )

  it('costs no session when the reading fails', async () => {
    let fails = true
    const pressure = (): PressureReading => {
      if (fails) throw new Error('no reading')
      return QUIET
    }
    await using model = await openModel(modelDir, { threads: 1, parts: { pressure } })
    await using session = model.createSession()
    await expect(session.step(1)).rejects.toThrow('no reading')
    fails = false
    const after = await session.step(17)
    await using fresh = model.createSession()
    await fresh.step(1)
    expect(after).toEqual(await fresh.step(17))
  })
})
