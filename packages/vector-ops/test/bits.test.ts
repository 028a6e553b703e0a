import { createPool, type TaskPool } from '@k3/task-pool'
import { afterAll, describe, expect, it } from 'vitest'
import { gaussian, poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import { createVectorOps, supportedIsas, type VectorOps } from '../src/index.js'

const pools = [1, 2, 3, 4].map((threads) => createPool({ threads }))
afterAll(() => {
  for (const pool of pools) pool.close()
})

const eps = 1e-5
const sizes = [1, 2, 7, 13, 15, 16, 17, 31, 33, 63, 64, 65, 79, 80, 127, 130, 7168]

/** Every output of `run`, the scalar and serial ones being the measure, on each instruction set and pool. */
const expectSameBits = (run: (ops: VectorOps) => readonly Float32Array[]) => {
  const want = run(createVectorOps({ isa: 'scalar' }))
  for (const out of want) expect(out.some(Number.isNaN)).toBe(false)
  for (const isa of supportedIsas()) {
    for (const pool of [undefined, ...pools] as (TaskPool | undefined)[]) {
      const got = run(createVectorOps(pool ? { isa, pool } : { isa }))
      expect(got.length).toBe(want.length)
      for (const [i, out] of got.entries()) expect(sameBits(out, want[i]!)).toBe(true)
    }
  }
}

const rowsOf = (tokens: number, dim: number, run: (out: Float32Array) => void) => {
  const out = poisoned(tokens * dim)
  run(out)
  return out
}

describe('bits of vector ops', () => {
  it.each(sizes)('are the same on every ISA and pool for rows of %i', (dim) => {
    const tokens = dim > 1000 ? 11 : 5
    const x = gaussian(tokens * dim, dim)
    const weight = gaussian(dim, dim + 1)
    const sources = Array.from({ length: 9 }, (_, s) => gaussian(tokens * dim, 100 * dim + s, s + 0.5))
    expectSameBits((ops) => [
      rowsOf(tokens, dim, (out) => ops.rmsNorm(x, weight, eps, out, tokens)),
      ...[1, 2, 3, 4, 5, 7, 9].map((count) =>
        rowsOf(tokens, dim, (out) => ops.residualMix(sources.slice(0, count), weight, eps, out, tokens))
      )
    ])
  })

  it('are the same for one token and for many', () => {
    const tokens = 13
    const dim = 200
    const x = gaussian(tokens * dim, 5)
    const sources = [1, 2, 3].map((seed) => gaussian(tokens * dim, seed))
    const weight = gaussian(dim, 6)
    const ops = createVectorOps({ pool: pools[3]! })
    const norms = rowsOf(tokens, dim, (out) => ops.rmsNorm(x, weight, eps, out, tokens))
    const mixes = rowsOf(tokens, dim, (out) => ops.residualMix(sources, weight, eps, out, tokens))
    for (let t = 0; t < tokens; t++) {
      const row = (all: Float32Array) => all.slice(t * dim, (t + 1) * dim)
      const norm = rowsOf(1, dim, (out) => ops.rmsNorm(row(x), weight, eps, out, 1))
      const mix = rowsOf(1, dim, (out) => ops.residualMix(sources.map(row), weight, eps, out, 1))
      expect(sameBits(norm, row(norms))).toBe(true)
      expect(sameBits(mix, row(mixes))).toBe(true)
    }
  })

  it('are the same for 17, 40 and 64 sources', () => {
    const dim = 50
    for (const count of [17, 40, 64]) {
      const sources = Array.from({ length: count }, (_, s) => gaussian(dim, s, 3))
      const key = gaussian(dim, 99)
      expectSameBits((ops) => [
        rowsOf(1, dim, (out) => ops.residualMix(sources, key, eps, out, 1)),
        rowsOf(1, count, (out) => ops.mixWeights(sources, key, eps, out, 1))
      ])
    }
  })

  it.each([...Array.from({ length: 33 }, (_, i) => i + 1), 63, 64, 65, 6144, 70001])(
    'are the same on every ISA and pool for %i elements',
    (length) => {
      const x = gaussian(length, length, 8)
      const y = gaussian(length, length + 1, 40)
      const betas = { beta: 4, linearBeta: 25 }
      expectSameBits((ops) => [
        rowsOf(1, length, (out) => ops.situGlu(x, y, betas, out, length)),
        rowsOf(1, length, (out) => ops.add(x, y, out, length)),
        rowsOf(1, length, (out) => ops.exp(x, out, length)),
        rowsOf(1, length, (out) => ops.sigmoid(x, out, length)),
        rowsOf(1, length, (out) => ops.tanh(x, out, length))
      ])
    }
  )

  it.each([
    [1, 1],
    [5, 2],
    [16, 16],
    [17, 3],
    [33, 8],
    [300, 256],
    [896, 16]
  ])('are the same on every ISA and pool for a router of %i experts, top %i', (experts, k) => {
    const tokens = 9
    const bias = gaussian(experts, 3, 0.1)
    const logits = gaussian(tokens * experts, 4, 2)
    expectSameBits((ops) => {
      const router = ops.createRouter({ bias, k, renormalize: true, scalingFactor: 2.5 })
      const indices = new Int32Array(tokens * k).fill(-1)
      const weights = rowsOf(tokens, k, (out) => router.route(logits, indices, out, tokens))
      return [Float32Array.from(indices), weights]
    })
  })

  it('are the same in place', () => {
    const tokens = 3
    const dim = 83
    const x = gaussian(tokens * dim, 1)
    const y = gaussian(tokens * dim, 2)
    const weight = gaussian(dim, 3)
    const betas = { beta: 4, linearBeta: 25 }
    expectSameBits((ops) => {
      const apart = rowsOf(tokens, dim, (out) => ops.residualMix([x, y], weight, eps, out, tokens))
      const places = [
        [x, (out: Float32Array) => ops.residualMix([out, y], weight, eps, out, tokens)],
        [y, (out: Float32Array) => ops.residualMix([x, out], weight, eps, out, tokens)]
      ] as const
      for (const [source, run] of places) {
        const out = source.slice()
        run(out)
        expect(sameBits(out, apart)).toBe(true)
      }
      const inPlace = (run: (out: Float32Array) => void) => {
        const out = x.slice()
        run(out)
        return out
      }
      const length = tokens * dim
      const pairs = [
        [(a: Float32Array, out: Float32Array) => ops.rmsNorm(a, weight, eps, out, tokens)],
        [(a: Float32Array, out: Float32Array) => ops.situGlu(a, y, betas, out, length)],
        [(a: Float32Array, out: Float32Array) => ops.situGlu(y, a, betas, out, length)],
        [(a: Float32Array, out: Float32Array) => ops.add(a, y, out, length)],
        [(a: Float32Array, out: Float32Array) => ops.add(y, a, out, length)],
        [(a: Float32Array, out: Float32Array) => ops.exp(a, out, length)],
        [(a: Float32Array, out: Float32Array) => ops.sigmoid(a, out, length)],
        [(a: Float32Array, out: Float32Array) => ops.tanh(a, out, length)]
      ] as const
      return pairs.map(([run]) => {
        const same = inPlace((out) => run(out, out))
        const elsewhere = rowsOf(tokens, dim, (out) => run(x, out))
        expect(sameBits(same, elsewhere)).toBe(true)
        return same
      })
    })
  })
})
