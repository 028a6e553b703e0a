import { describe, expect, it } from 'vitest'
import { movedBy, poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import { createExpertMlp, createMatrix, supportedIsas } from '../src/index.js'
import { misaligned, randomMatrix, randomNumbers } from './arrays.js'
import { batchOf, latents, randomExperts } from './experts.js'

describe.each(supportedIsas())('mxfp4 on %s', (isa) => {
  it.each([
    [1, 32],
    [1, 160],
    [5, 96],
    [17, 288]
  ])('multiplies bytes and numbers anywhere, %i x %i', (rows, cols) => {
    const spec = randomMatrix(rows, cols, 3)
    const tokens = 9
    const x = randomNumbers(tokens * cols, 4)
    const runAt = (by: number) => {
      const bytes = { packed: misaligned(spec.packed, by), scales: misaligned(spec.scales, (by + 5) % 16) }
      const matrix = createMatrix({ ...spec, ...bytes }, { isa })
      return [1, 2, 7, tokens].map((count) => {
        const out = movedBy(by, poisoned(count * rows))
        matrix.apply(movedBy(by + 1, x), out, count)
        return out
      })
    }
    const want = runAt(0)
    for (const out of want) expect(out.some(Number.isNaN)).toBe(false)
    for (const by of [1, 2, 3, 7, 8, 15]) {
      for (const [i, out] of runAt(by).entries()) expect(sameBits(out, want[i]!)).toBe(true)
    }
  })

  it.each([
    [32, 32],
    [96, 160]
  ])('runs experts wherever their bytes are, %i to %i', (latent, inner) => {
    const { spec, region, bases } = randomExperts(3, latent, inner, 5)
    const pairs = [1, 0, 5]
    const batch = batchOf(bases, pairs, 4)
    const runAt = (by: number) => {
      const mlp = createExpertMlp(spec, misaligned(region, by), { isa })
      const out = movedBy(by, poisoned(6 * latent))
      mlp.apply(movedBy(by + 1, latents(4, latent, 6)), batch, out)
      return out
    }
    const want = runAt(0)
    expect(want.some(Number.isNaN)).toBe(false)
    for (const by of [1, 2, 3, 7, 8, 15]) expect(sameBits(runAt(by), want)).toBe(true)
  })

  it('refuses a matrix without rows or columns by name', () => {
    const nothing = { packed: new Uint8Array(0), scales: new Uint8Array(0) }
    for (const shape of [
      { rows: 0, cols: 64 },
      { rows: 3, cols: 0 }
    ]) {
      expect(() => createMatrix({ ...nothing, ...shape }, { isa })).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/^ERR_(OUT_OF_RANGE|MXFP4_SHAPE)$/) })
      )
    }
  })
})
