import assert from 'node:assert/strict'
import type { Sampler } from '../interfaces.js'
import type { ConformanceCase } from './conformance-case.js'

/** Checks for a `Sampler`; `create` gives a fresh one in the same starting condition each time. */
export const samplerCases = (create: () => Sampler): readonly ConformanceCase[] => {
  const logits = () => Float32Array.from({ length: 97 }, (_, i) => 3 * Math.sin(i * 12.9898))
  return [
    {
      name: 'sampler picks ids of the vocabulary and leaves the logits alone',
      run: async () => {
        const sampler = create()
        const given = logits()
        for (let i = 0; i < 200; i++) {
          const id = sampler.pick(given, null)
          assert.ok(Number.isInteger(id) && id >= 0 && id < given.length, `${id} is an id`)
        }
        assert.deepEqual(given, logits())
      }
    },
    {
      name: 'sampler picks the only token that is possible',
      run: async () => {
        const given = new Float32Array(97).fill(-1e4)
        given[41] = 0
        assert.equal(create().pick(given, null), 41)
      }
    },
    {
      name: 'sampler repeats its choices from the same start',
      run: async () => {
        const [a, b] = [create(), create()]
        for (let i = 0; i < 50; i++) assert.equal(a.pick(logits(), null), b.pick(logits(), null))
      }
    },
    {
      name: 'sampler picks only what the mask allows',
      run: async () => {
        const sampler = create()
        const allowed = Uint32Array.of(0, 1 << 9, 0, 1)
        const seen = new Set<number>()
        for (let i = 0; i < 100; i++) seen.add(sampler.pick(logits(), allowed))
        assert.ok(
          [...seen].every((id) => id === 41 || id === 96),
          'ids are allowed ones'
        )
        assert.throws(() => sampler.pick(logits(), new Uint32Array(4)), 'nothing is allowed')
      }
    },
    {
      name: 'sampler starts a sequence anew at begin',
      run: async () => {
        const [used, fresh] = [create(), create()]
        used.begin([1, 2, 3])
        used.accept(4)
        for (const sampler of [used, fresh]) sampler.begin([5])
        for (let i = 0; i < 50; i++) {
          const id = used.pick(logits(), null)
          assert.equal(fresh.pick(logits(), null), id)
          for (const sampler of [used, fresh]) sampler.accept(id)
        }
      }
    },
    {
      name: 'sampler refuses NaN logits',
      run: async () => {
        const given = logits()
        given[96] = Number.NaN
        assert.throws(() => create().pick(given, null))
      }
    }
  ]
}
