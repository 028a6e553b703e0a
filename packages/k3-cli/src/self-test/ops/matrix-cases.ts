import { createLinear } from '@k3/bf16-linear'
import { createExpertMlp, createMatrix, decode } from '@k3/mxfp4'
import { expertRun } from './expert-run.js'
import { type OpCase, poisoned, type RunOp } from './op-case.js'

/** Applies a matrix to all tokens at once and to one at a time: two ways that must agree. */
const bothWays = (
  { golden }: OpCase,
  matrix: { readonly rows: number; apply(x: Float32Array, out: Float32Array, tokens: number): void }
) => {
  const x = golden.f32('x')
  const cols = golden.size('x', -1)
  const tokens = x.length / cols
  const whole = poisoned(tokens * matrix.rows)
  const single = poisoned(tokens * matrix.rows)
  matrix.apply(x, whole, tokens)
  for (let t = 0; t < tokens; t++) matrix.apply(x.subarray(t * cols), single.subarray(t * matrix.rows), 1)
  return [whole, single].map((out) => new Map([['out.y', out]]))
}

const bf16Product: RunOp = (one, native) => {
  const { golden } = one
  const [rows, cols] = [golden.size('weight', -2), golden.size('weight', -1)]
  return bothWays(one, createLinear({ weights: golden.bytes('weight'), rows, cols }, native))
}

const packedMatrix = ({ golden }: OpCase) => ({
  packed: golden.bytes('weight_packed'),
  scales: golden.bytes('weight_scale'),
  rows: golden.size('weight_packed', -2),
  cols: 2 * golden.size('weight_packed', -1)
})

const mxfp4Product: RunOp = (one, native) => bothWays(one, createMatrix(packedMatrix(one), native))

const mxfp4Numbers: RunOp = (one) => {
  const { packed, scales, rows, cols } = packedMatrix(one)
  const out = poisoned(rows * cols)
  decode(packed, scales, { rows, cols }, out)
  return [new Map([['out.w', out]])]
}

// The goldens of a single expert state no constants: these are the model's.
const SITU = { beta: 4, linearBeta: 25 }

const expert: RunOp = ({ golden }, native) => {
  const z = golden.f32('z')
  const latent = golden.size('z', -1)
  const inner = golden.size('w1.weight_packed', -2)
  const tokens = z.length / latent
  const { layout, bytes } = expertRun((suffix) => golden.bytes(suffix))
  const mlp = createExpertMlp({ latent, inner, topK: 1, ...SITU, layout }, bytes, native)
  mlp.validate(0)
  const whole = poisoned(z.length)
  const batch = { count: 1, bases: Float64Array.of(0), starts: Int32Array.of(0, tokens) }
  mlp.apply(z, { ...batch, tokens: Int32Array.from({ length: tokens }, (_, t) => t) }, whole)
  const single = poisoned(z.length)
  for (let t = 0; t < tokens; t++) {
    const one = { ...batch, starts: Int32Array.of(0, 1), tokens: Int32Array.of(0) }
    mlp.apply(z.subarray(t * latent), one, single.subarray(t * latent))
  }
  return [whole, single].map((out) => new Map([['out.y', out]]))
}

/** Runners of the matrix products and of MXFP4. */
export const matrixCases: Readonly<Record<string, RunOp>> = {
  bf16_matvec: bf16Product,
  mxfp4_decode: mxfp4Numbers,
  mxfp4_matvec: mxfp4Product,
  expert
}
