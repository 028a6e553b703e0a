import { createKda, l2Normalize, shortConv } from '@k3/kda'
import {
  constant,
  cutsOf,
  type NativeChoice,
  type OpCase,
  poisoned,
  positionsOf,
  type RunOp
} from './op-case.js'
import { exponentials } from './vector-cases.js'

const l2Norm: RunOp = (one, { isa }) => {
  const x = one.golden.f32('x')
  const dim = one.golden.size('x', -1)
  const out = poisoned(x.length)
  l2Normalize(x, out, { rows: x.length / dim, dim, eps: constant(one, 'eps'), isa })
  return [new Map([['out.y', out]])]
}

const convolution: RunOp = (one, native) => {
  const { golden } = one
  const x = golden.f32('x')
  const weight = golden.f32('weight')
  const channels = golden.size('x', -1)
  const taps = golden.size('weight', -1)
  const places = positionsOf(one, 'out.tail_after')
  return cutsOf(x.length / channels, places).map((cuts) => {
    const out = poisoned(x.length)
    const tail = golden.f32('tail')
    const outputs = new Map([['out.y', out]])
    let first = 0
    for (const end of cuts) {
      const from = first * channels
      shortConv(x.subarray(from), tail, weight, out.subarray(from), {
        tokens: end - first,
        channels,
        taps,
        ...native
      })
      if (places.includes(end)) outputs.set(`out.tail_after_${end}`, tail.slice())
      first = end
    }
    return outputs
  })
}

/** A layer of which only the decay gate or the recurrence is used: the parameters of the rest are zeros. */
const bareKda = (heads: number, headDim: number, gate: Partial<GateParameters>, native: NativeChoice) => {
  const width = heads * headDim
  const { aLog = new Float32Array(heads), dtBias = new Float32Array(width), gateLowerBound = -1 } = gate
  const conv = new Float32Array(width)
  const parameters = { qConv: conv, kConv: conv, vConv: conv, aLog, dtBias, oNorm: new Float32Array(headDim) }
  return createKda({ heads, headDim, convTaps: 1, gateLowerBound, normEps: 1 }, parameters, native)
}

interface GateParameters {
  readonly aLog: Float32Array
  readonly dtBias: Float32Array
  readonly gateLowerBound: number
}

const decayGate: RunOp = (one, native) => {
  const { golden } = one
  const z = golden.f32('z')
  const [heads, headDim] = [golden.size('z', -2), golden.size('z', -1)]
  const parameters = {
    aLog: golden.f32('A_log'),
    dtBias: golden.f32('dt_bias'),
    gateLowerBound: constant(one, 'lower_bound')
  }
  const g = poisoned(z.length)
  bareKda(heads, headDim, parameters, native).decayGate(z, g, z.length / (heads * headDim))
  return [
    new Map([
      ['out.g', g],
      ['out.alpha', exponentials(g, native)]
    ])
  ]
}

const recurrence: RunOp = (one, native) => {
  const { golden } = one
  const [heads, headDim] = [golden.size('q', -2), golden.size('q', -1)]
  const width = heads * headDim
  const kda = bareKda(heads, headDim, {}, native)
  const [q, k, v, g, beta] = recurrenceInputs(one)
  const places = positionsOf(one, 'out.S_after')
  return cutsOf(q.length / width, places).map((cuts) => {
    const state = golden.f32('S0')
    const out = poisoned(q.length)
    const outputs = new Map([['out.o', out]])
    let first = 0
    for (const end of cuts) {
      const [q1, k1, v1, decay] = [q, k, v, g].map((rows) => rows.subarray(first * width)) as Four
      const inputs = { q: q1, k: k1, v: v1, decay, beta: beta.subarray(first * heads) }
      kda.recur(inputs, state, out.subarray(first * width), end - first)
      if (places.includes(end)) outputs.set(`out.S_after_${end}`, state.slice())
      first = end
    }
    return outputs
  })
}

type Four = [Float32Array, Float32Array, Float32Array, Float32Array]

const recurrenceInputs = ({ golden }: OpCase) =>
  ['q', 'k', 'v', 'g', 'beta'].map((name) => golden.f32(name)) as [...Four, Float32Array]

/** Runners of the parts of Kimi Delta Attention. */
export const kdaCases: Readonly<Record<string, RunOp>> = {
  l2norm: l2Norm,
  short_conv: convolution,
  decay_gate: decayGate,
  kda_recurrence: recurrence
}
