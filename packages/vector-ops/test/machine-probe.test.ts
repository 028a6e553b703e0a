import { createPool } from '@k3/task-pool'
import { afterAll, describe, expect, it } from 'vitest'
import { createMachineProbe, supportedIsas } from '../src/index.js'

const pools = [1, 2, 3].map((threads) => createPool({ threads }))
afterAll(() => {
  for (const pool of pools) pool.close()
})

describe.each(supportedIsas())('a machine probe on %s', (isa) => {
  it('reads every word once, whatever the threads and the alignment', () => {
    const bytes = new Uint8Array(8 + 256 * 37)
    const words = new Uint32Array(bytes.buffer, 8)
    words.forEach((_, i) => {
      words[i] = Math.imul(i + 1, 2654435761)
    })
    const sum = words.reduce((total, word) => (total + word) >>> 0, 0)
    for (const pool of [undefined, ...pools]) {
      const probe = createMachineProbe({ isa, ...(pool === undefined ? {} : { pool }) })
      for (const streams of [undefined, 1, 4] as const) {
        const read = probe.reading(bytes.subarray(8), 256 * 37, streams)
        expect(read()).toBe(sum)
        expect(read()).toBe(sum)
      }
    }
  })

  it('counts what every thread multiplied', () => {
    const [one, two, three] = pools.map((pool) => createMachineProbe({ isa, pool }).multiplyAdd(1000))
    expect(one).toBeGreaterThanOrEqual(16_000)
    expect([two, three]).toEqual([2 * one!, 3 * one!])
  })

  it('refuses a pool that is none', () => {
    const refusal = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_HANDLE' })
    for (const pool of [{ handle: {} }, 5, null, {}, 'pool']) {
      expect(() => createMachineProbe({ isa, pool: pool as never })).toThrow(refusal)
    }
  })

  it('refuses bytes that are not there, or not a multiple of 256', () => {
    const probe = createMachineProbe({ isa })
    const refusal = expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' })
    for (const bytes of [0, 100, 300, 1024]) {
      expect(() => probe.reading(new Uint8Array(512), bytes)).toThrow(refusal)
    }
    expect(() => probe.reading(new Uint8Array(512), 512, 2 as never)).toThrow(refusal)
    expect(() => probe.multiplyAdd(0)).toThrow(refusal)
  })
})
