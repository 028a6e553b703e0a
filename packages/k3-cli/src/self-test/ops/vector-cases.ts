import { createVectorOps, foldKeyWeight } from '@k3/vector-ops'
import { constant, type NativeChoice, poisoned, type RunOp } from './op-case.js'

const rmsNorm: RunOp = (one, native) => {
  const { golden } = one
  const x = golden.f32('x')
  const out = poisoned(x.length)
  const tokens = x.length / golden.size('weight', -1)
  createVectorOps(native).rmsNorm(x, golden.f32('weight'), constant(one, 'eps'), out, tokens)
  return [new Map([['out.y', out]])]
}

const residualMix: RunOp = (one, native) => {
  const { golden } = one
  const tokens = golden.size('sources', -3)
  const count = golden.size('sources', -2)
  const width = golden.size('sources', -1)
  const stored = golden.f32('sources')
  const sources = Array.from({ length: count }, (_, source) => {
    const rows = new Float32Array(tokens * width)
    for (let t = 0; t < tokens; t++) {
      const at = (t * count + source) * width
      rows.set(stored.subarray(at, at + width), t * width)
    }
    return rows
  })
  const key = foldKeyWeight(golden.f32('gain'), golden.f32('proj'))
  const eps = constant(one, 'eps')
  const ops = createVectorOps(native)
  const y = poisoned(tokens * width)
  const softmax = poisoned(tokens * count)
  ops.residualMix(sources, key, eps, y, tokens)
  ops.mixWeights(sources, key, eps, softmax, tokens)
  return [
    new Map([
      ['out.y', y],
      ['out.softmax', softmax]
    ])
  ]
}

const situGlu: RunOp = (one, native) => {
  const gate = one.golden.f32('g')
  const out = poisoned(gate.length)
  const betas = { beta: constant(one, 'beta'), linearBeta: constant(one, 'linear_beta') }
  createVectorOps(native).situGlu(gate, one.golden.f32('u'), betas, out, gate.length)
  return [new Map([['out.y', out]])]
}

const router: RunOp = (one, native) => {
  const { golden, constants } = one
  const k = golden.size('out.index', -1)
  const bias = golden.f32('bias')
  const logits = golden.f32('logits')
  const tokens = logits.length / bias.length
  const spec = {
    bias,
    k,
    renormalize: constants.renormalize === true,
    scalingFactor: constant(one, 'scaling_factor')
  }
  const chosen = new Int32Array(tokens * k).fill(-1)
  const weights = poisoned(tokens * k)
  createVectorOps(native).createRouter(spec).route(logits, chosen, weights, tokens)
  return [
    new Map<string, Float32Array | Int32Array>([
      ['out.index', chosen],
      ['out.weight', weights]
    ])
  ]
}

/** e^x of every number. */
export const exponentials = (x: Float32Array, native: NativeChoice): Float32Array => {
  const out = poisoned(x.length)
  createVectorOps(native).exp(x, out, x.length)
  return out
}

/** Runners of the equations that are neither a matrix product nor attention. */
export const vectorCases: Readonly<Record<string, RunOp>> = {
  rms_norm: rmsNorm,
  attn_res: residualMix,
  situ_glu: situGlu,
  router
}
