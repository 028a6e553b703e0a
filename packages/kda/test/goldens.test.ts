import { describe, expect, it } from 'vitest'
import { type Golden, goldens } from '../../native-kit/test-kit/goldens.js'
import { createKda, l2Normalize, shortConv, supportedIsas } from '../src/index.js'

const poisoned = (length: number) => new Float32Array(length).fill(NaN)
const named = (op: string) => goldens(op).map((golden) => [golden.row.name, golden] as const)
const ends = (golden: Golden, prefix: string) =>
  Object.keys(golden.row.outputs)
    .filter((output) => output.startsWith(prefix))
    .map((output) => Number(output.slice(prefix.length)))

const op = (
  heads: number,
  headDim: number,
  isa: ReturnType<typeof supportedIsas>[number],
  golden?: Golden
) => {
  const zeros = new Float32Array(heads * headDim * 4)
  const aLog = golden === undefined ? zeros : golden.tensor('A_log')
  const dtBias = golden === undefined ? zeros.slice(0, heads * headDim) : golden.tensor('dt_bias')
  const oNorm = zeros.slice(0, headDim)
  const parameters = { qConv: zeros, kConv: zeros, vConv: zeros, oNorm, aLog, dtBias }
  return createKda({ heads, headDim, convTaps: 4, gateLowerBound: -5, normEps: 1e-5 }, parameters, { isa })
}

describe.each(supportedIsas())('kda on %s', (isa) => {
  it.each(named('short_conv'))('convolves as %s, however it is cut', (_, golden) => {
    const { T, P, W } = golden.row.dims
    const x = golden.tensor('x')
    for (const end of ends(golden, 'out.tail_after_')) {
      const tail = golden.tensor('tail')
      const y = poisoned(T! * P!)
      const size = { channels: P!, taps: W!, isa }
      shortConv(x, tail, golden.tensor('weight'), y, { tokens: end, ...size })
      expect(golden.complaint(`out.tail_after_${end}`, tail)).toBeNull()
      const rest = { tokens: T! - end, ...size }
      shortConv(x.subarray(end * P!), tail, golden.tensor('weight'), y.subarray(end * P!), rest)
      expect(golden.complaint('out.y', y)).toBeNull()
    }
  })

  it.each(named('l2norm'))('normalises as %s', (_, golden) => {
    const { T, N, D } = golden.row.dims
    const y = poisoned(T! * N! * D!)
    l2Normalize(golden.tensor('x'), y, { rows: T! * N!, dim: D!, eps: golden.row.const.eps!, isa })
    expect(golden.complaint('out.y', y)).toBeNull()
  })

  it.each(named('decay_gate'))('decays as %s', (_, golden) => {
    const { T, N, D } = golden.row.dims
    const g = poisoned(T! * N! * D!)
    op(N!, D!, isa, golden).decayGate(golden.tensor('z'), g, T!)
    expect(golden.complaint('out.g', g)).toBeNull()
  })

  it.each(named('kda_recurrence'))('recurs as %s', (_, golden) => {
    const { T, N, D } = golden.row.dims
    const kda = op(N!, D!, isa)
    const state = golden.tensor('S0')
    const o = poisoned(T! * N! * D!)
    const rows = (name: string, width: number, from: number) => golden.tensor(name).subarray(from * width)
    let from = 0
    for (const end of ends(golden, 'out.S_after_')) {
      const [q, k, v, decay] = ['q', 'k', 'v', 'g'].map((name) => rows(name, N! * D!, from)) as Float32Array[]
      const inputs = { q: q!, k: k!, v: v!, decay: decay!, beta: rows('beta', N!, from) }
      kda.recur(inputs, state, o.subarray(from * N! * D!), end - from)
      expect(golden.complaint(`out.S_after_${end}`, state)).toBeNull()
      from = end
    }
    expect(golden.complaint('out.o', o)).toBeNull()
  })
})
