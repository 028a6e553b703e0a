import { describe, expect, it } from 'vitest'
import { movedBy, poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import {
  createKda,
  type KdaInputs,
  type KdaParameters,
  l2Normalize,
  shortConv,
  supportedIsas
} from '../src/index.js'
import { inputsOf, parametersOf, shapeOf, startOf } from './layer.js'

const moved = <A extends KdaInputs | KdaParameters>(by: number, arrays: A): A => {
  const entries = Object.entries(arrays) as [string, Float32Array][]
  return Object.fromEntries(entries.map(([name, x], i) => [name, movedBy(by + i, x)])) as unknown as A
}

describe.each(supportedIsas())('kda on %s', (isa) => {
  it.each([
    [1, 1, 1],
    [3, 7, 2],
    [2, 33, 4],
    [1, 128, 4]
  ])('reads and writes numbers anywhere, %i heads of %i, %i taps', (...sizes) => {
    const shape = shapeOf(...sizes)
    const tokens = 5
    const width = shape.heads * shape.headDim
    const [parameters, inputs] = [parametersOf(shape), inputsOf(shape, tokens)]
    const runAt = (by: number) => {
      const kda = createKda(shape, moved(by, parameters), { isa })
      const state = startOf(kda.createState())
      const out = movedBy(by, poisoned(tokens * width))
      kda.forward(moved(by, inputs), state, out, tokens)
      const unit = movedBy(by, poisoned(tokens * width))
      const rows = tokens * shape.heads
      l2Normalize(movedBy(by, inputs.k), unit, { rows, dim: shape.headDim, eps: 1e-6, isa })
      const gate = movedBy(by, poisoned(tokens * width))
      kda.decayGate(movedBy(by, inputs.decay), gate, tokens)
      const tail = movedBy(by, new Float32Array((shape.convTaps - 1) * width))
      const conv = movedBy(by, poisoned(tokens * width))
      const taps = movedBy(by + 1, parameters.qConv)
      shortConv(movedBy(by, inputs.q), tail, taps, conv, {
        tokens,
        channels: width,
        taps: shape.convTaps,
        isa
      })
      return [out, state.recurrence, state.tails, unit, gate, tail, conv]
    }
    const want = runAt(0)
    for (const x of want) expect(x.some(Number.isNaN)).toBe(false)
    for (const by of [1, 2, 3, 7, 13]) {
      for (const [i, got] of runAt(by).entries()) expect(sameBits(got, want[i]!)).toBe(true)
    }
  })

  it('does nothing for no tokens', () => {
    const shape = shapeOf(2, 17, 3)
    const kda = createKda(shape, parametersOf(shape), { isa })
    const [state, out] = [startOf(kda.createState()), poisoned(3)]
    const before = state.copy()
    kda.forward(inputsOf(shape, 0), state, out, 0)
    expect(out.every(Number.isNaN)).toBe(true)
    expect(sameBits(state.recurrence, before.recurrence) && sameBits(state.tails, before.tails)).toBe(true)
  })
})
