import { describe, expect, it } from 'vitest'
import { poisoned } from '../../native-kit/test-kit/arrays.js'
import { type Golden, goldens, widened } from '../../native-kit/test-kit/goldens.js'
import { createVectorOps, foldKeyWeight, supportedIsas } from '../src/index.js'

const numbers = (golden: Golden, name: string) => {
  const array = golden.tensor<Float32Array | Uint16Array>(name)
  return array instanceof Uint16Array ? widened(array) : array
}

describe.each(supportedIsas())('vector ops on %s', (isa) => {
  const ops = createVectorOps({ isa })

  it.each(goldens('rms_norm').map((g) => [g.row.name, g] as const))('agree with %s', (_, golden) => {
    const { T, D } = golden.row.dims
    const out = poisoned(T! * D!)
    ops.rmsNorm(numbers(golden, 'x'), numbers(golden, 'weight'), golden.row.const.eps!, out, T!)
    expect(golden.complaint('out.y', out)).toBeNull()
    if (T! > 2) expect(out.subarray(D!, 2 * D!).every((y) => y === 0)).toBe(true)
  })

  it.each(goldens('attn_res').map((g) => [g.row.name, g] as const))('agree with %s', (_, golden) => {
    const { T, S, H } = golden.row.dims
    const all = numbers(golden, 'sources')
    const sources = Array.from({ length: S! }, (_, s) => {
      const rows = poisoned(T! * H!)
      for (let t = 0; t < T!; t++) rows.set(all.subarray((t * S! + s) * H!, (t * S! + s + 1) * H!), t * H!)
      return rows
    })
    const key = foldKeyWeight(numbers(golden, 'gain'), numbers(golden, 'proj'))
    const weights = poisoned(T! * S!)
    ops.mixWeights(sources, key, golden.row.const.eps!, weights, T!)
    expect(golden.complaint('out.softmax', weights)).toBeNull()
    const out = poisoned(T! * H!)
    ops.residualMix(sources, key, golden.row.const.eps!, out, T!)
    expect(golden.complaint('out.y', out)).toBeNull()
  })

  it.each(goldens('situ_glu').map((g) => [g.row.name, g] as const))('agree with %s', (_, golden) => {
    const { beta, linear_beta: linearBeta } = golden.row.const
    const out = poisoned(golden.row.dims.n!)
    const betas = { beta: beta!, linearBeta: linearBeta! }
    ops.situGlu(numbers(golden, 'g'), numbers(golden, 'u'), betas, out, out.length)
    expect(golden.complaint('out.y', out)).toBeNull()
    expect(out.every((y) => Math.abs(y) <= 100)).toBe(true)
  })

  it.each(goldens('router').map((g) => [g.row.name, g] as const))('agree with %s', (_, golden) => {
    const { T, k } = golden.row.dims
    const { renormalize, scaling_factor: scalingFactor } = golden.row.const
    const spec = { k: k!, renormalize: Boolean(renormalize), scalingFactor: scalingFactor! }
    const router = ops.createRouter({ bias: numbers(golden, 'bias'), ...spec })
    const indices = new Int32Array(T! * k!).fill(-1)
    const weights = poisoned(T! * k!)
    router.route(numbers(golden, 'logits'), indices, weights, T!)
    expect([...indices]).toEqual([...golden.tensor<BigInt64Array>('out.index')].map(Number))
    expect(golden.complaint('out.weight', weights)).toBeNull()
  })
})
