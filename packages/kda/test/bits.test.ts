import { describe, expect, it } from 'vitest'
import { gaussian, poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import { createKda, KdaState, l2Normalize, shortConv, supportedIsas } from '../src/index.js'
import {
  inputsOf,
  parametersOf,
  pools,
  type Run,
  rowsFrom,
  run,
  sequenceOf,
  shapeOf,
  startOf
} from './layer.js'

const threads = pools()

const expectSame = (got: Run, want: Run) => {
  expect(sameBits(got.out, want.out)).toBe(true)
  expect(sameBits(got.state.recurrence, want.state.recurrence)).toBe(true)
  expect(sameBits(got.state.tails, want.state.tails)).toBe(true)
}

describe('the bits of a layer', () => {
  it.each([
    [1, 1, 4],
    [5, 1, 1],
    [3, 7, 2],
    [1, 16, 3],
    [5, 17, 5],
    [3, 33, 4],
    [2, 64, 4],
    [5, 64, 1],
    [3, 100, 5],
    [5, 128, 4]
  ])('are the same on every ISA and pool and for every cut, %i heads of %i, %i taps', (heads, dim, taps) => {
    const tokens = 71
    const sequence = sequenceOf(shapeOf(heads, dim, taps), tokens)
    const want = run(sequence, [1], { isa: 'scalar' })
    expect(want.out.some(Number.isNaN)).toBe(false)
    for (const isa of supportedIsas()) {
      for (const pool of threads) {
        for (const lengths of [[1], [2, 3], [7], [64, 7], [tokens]])
          expectSame(run(sequence, lengths, pool ? { isa, pool } : { isa }), want)
      }
    }
  })

  it('are the same on every ISA and pool at the released size', () => {
    const sequence = sequenceOf(shapeOf(96, 128, 4), 3)
    const want = run(sequence, [1], { isa: 'scalar' })
    for (const isa of supportedIsas()) {
      for (const pool of threads)
        expectSame(run(sequence, [pool ? 3 : 2], pool ? { isa, pool } : { isa }), want)
    }
  })

  it('do not depend on where arrays start in their buffers', () => {
    const sequence = sequenceOf(shapeOf(3, 40, 4), 5)
    const want = run(sequence, [5], {})
    const moved = (x: Float32Array, by: number) => {
      const copy = new Float32Array(x.length + 16).subarray(by, by + x.length)
      copy.set(x)
      return copy
    }
    for (const by of [1, 2, 5, 15]) {
      const { q, k, v, decay, beta, gate } = sequence.inputs
      const [mq, mk, mv, mdecay, mbeta, mgate] = [q, k, v, decay, beta, gate].map((x) =>
        moved(x, by)
      ) as Float32Array[]
      const inputs = { q: mq!, k: mk!, v: mv!, decay: mdecay!, beta: mbeta!, gate: mgate! }
      const state = new KdaState(moved(sequence.start.recurrence, by), moved(sequence.start.tails, by))
      const out = moved(poisoned(5 * 120), by)
      createKda(sequence.shape, sequence.parameters).forward(inputs, state, out, 5)
      expectSame({ out, state }, want)
    }
  })
})

describe('the bits of the delta rule alone', () => {
  it.each([
    [1, 1],
    [3, 7],
    [2, 33],
    [5, 65],
    [2, 128]
  ])('are the same on every ISA and pool and for every cut, %i heads of %i', (heads, dim) => {
    const shape = shapeOf(heads, dim, 4)
    const tokens = 19
    const width = heads * dim
    const unit = gaussian(tokens * width, 1)
    l2Normalize(unit, unit, { rows: tokens * heads, dim, eps: 1e-6 })
    const inputs = {
      ...inputsOf(shape, tokens),
      q: unit,
      k: unit.slice(),
      decay: gaussian(tokens * width, 2).map((x) => -5 * Math.abs(Math.sin(x))),
      beta: gaussian(tokens * heads, 3).map((x) => Math.abs(Math.sin(x)))
    }
    const recurred = (cut: number, options: object) => {
      const kda = createKda(shape, parametersOf(shape), options)
      const recurrence = startOf(kda.createState()).recurrence
      const out = poisoned(tokens * width)
      for (let from = 0; from < tokens; from += cut) {
        const length = Math.min(cut, tokens - from)
        kda.recur(rowsFrom(inputs, shape, from), recurrence, out.subarray(from * width), length)
      }
      return [out, recurrence] as const
    }
    const [wantOut, wantState] = recurred(1, { isa: 'scalar' })
    expect(wantOut.some(Number.isNaN)).toBe(false)
    for (const isa of supportedIsas()) {
      for (const pool of threads) {
        for (const cut of [1, 2, 7, 19]) {
          const [out, state] = recurred(cut, pool ? { isa, pool } : { isa })
          expect(sameBits(out, wantOut)).toBe(true)
          expect(sameBits(state, wantState)).toBe(true)
        }
      }
    }
  })
})

describe('the bits of the primitives', () => {
  it.each([
    [1, 1],
    [7, 2],
    [17, 3],
    [65, 4],
    [130, 5]
  ])(
    'shortConv: the same on every ISA and pool and for every cut, %i channels, %i taps',
    (channels, taps) => {
      const tokens = 13
      const x = gaussian(tokens * channels, 1)
      const weight = gaussian(taps * channels, 2)
      const convolved = (cut: number, options: object) => {
        const tail = gaussian((taps - 1) * channels, 3)
        const out = poisoned(tokens * channels)
        for (let from = 0; from < tokens; from += cut) {
          const size = { tokens: Math.min(cut, tokens - from), channels, taps, ...options }
          shortConv(x.subarray(from * channels), tail, weight, out.subarray(from * channels), size)
        }
        return [out, tail] as const
      }
      const want = convolved(1, { isa: 'scalar' })
      for (const isa of supportedIsas()) {
        for (const pool of threads) {
          for (const cut of [1, 2, 5, 13]) {
            const got = convolved(cut, pool ? { isa, pool } : { isa })
            for (const i of [0, 1] as const) expect(sameBits(got[i], want[i])).toBe(true)
          }
        }
      }
    }
  )

  it('decayGate and l2Normalize: the same on every ISA', () => {
    for (const dim of [1, 7, 16, 17, 33, 128]) {
      const shape = shapeOf(3, dim, 4)
      const z = gaussian(4 * 3 * dim, 5, 4)
      const made = supportedIsas().map((isa) => {
        const g = poisoned(z.length)
        const y = poisoned(z.length)
        createKda(shape, parametersOf(shape), { isa }).decayGate(z, g, 4)
        l2Normalize(z, y, { rows: 12, dim, eps: 1e-6, isa })
        return [g, y] as const
      })
      for (const [g, y] of made) {
        expect(sameBits(g, made[0]![0])).toBe(true)
        expect(sameBits(y, made[0]![1])).toBe(true)
      }
    }
  })
})
