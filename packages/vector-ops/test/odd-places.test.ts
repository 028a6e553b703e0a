import { describe, expect, it } from 'vitest'
import { gaussian, movedBy, poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import { createVectorOps, supportedIsas } from '../src/index.js'

const eps = 1e-5
const betas = { beta: 4, linearBeta: 25 }

describe.each(supportedIsas())('vector ops on %s', (isa) => {
  const ops = createVectorOps({ isa })

  it.each([1, 3, 15, 16, 17, 65, 130])('read and write numbers anywhere, rows of %i', (dim) => {
    const tokens = 3
    const n = tokens * dim
    const [x, y, weight] = [gaussian(n, 1, 8), gaussian(n, 2, 8), gaussian(dim, 3)]
    const runAt = (by: number) => {
      const at = (array: Float32Array, more = 0) => movedBy(by + more, array)
      const written = (length: number, run: (out: Float32Array) => void) => {
        const out = at(poisoned(length))
        run(out)
        return out
      }
      const sources = [at(x), at(y, 1), at(x, 2)]
      const k = Math.min(dim, 4)
      const router = ops.createRouter({ bias: at(weight), k, renormalize: true, scalingFactor: 2.5 })
      const indices = new Int32Array(tokens * k)
      return [
        written(n, (out) => ops.rmsNorm(at(x), at(weight, 1), eps, out, tokens)),
        written(n, (out) => ops.residualMix(sources, at(weight, 1), eps, out, tokens)),
        written(3 * tokens, (out) => ops.mixWeights(sources, at(weight, 1), eps, out, tokens)),
        written(n, (out) => ops.situGlu(at(x), at(y, 3), betas, out, n)),
        written(n, (out) => ops.add(at(x), at(y, 3), out, n)),
        written(n, (out) => ops.exp(at(x), out, n)),
        written(n, (out) => ops.sigmoid(at(x), out, n)),
        written(n, (out) => ops.tanh(at(x), out, n)),
        written(tokens * k, (out) => router.route(at(x), indices, out, tokens)),
        Float32Array.from(indices)
      ]
    }
    const want = runAt(0)
    for (const out of want) expect(out.some(Number.isNaN)).toBe(false)
    for (const by of [1, 2, 3, 7, 13]) {
      for (const [i, out] of runAt(by).entries()) expect(sameBits(out, want[i]!)).toBe(true)
    }
  })

  it('do nothing for no tokens and no elements', () => {
    const [x, out] = [gaussian(7, 1), poisoned(7)]
    ops.rmsNorm(x, x, eps, out, 0)
    ops.residualMix([x, x], x, eps, out, 0)
    ops.mixWeights([x, x], x, eps, out, 0)
    ops.situGlu(x, x, betas, out, 0)
    ops.add(x, x, out, 0)
    for (const name of ['exp', 'sigmoid', 'tanh'] as const) ops[name](x, out, 0)
    const router = ops.createRouter({ bias: x, k: 2, renormalize: true, scalingFactor: 1 })
    const indices = new Int32Array(2).fill(-1)
    router.route(x, indices, out, 0)
    expect([...indices]).toEqual([-1, -1])
    expect(out.every(Number.isNaN)).toBe(true)
  })
})
