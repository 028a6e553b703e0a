import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { poisoned, sameBits } from '../../native-kit/test-kit/arrays.js'
import { createKda, KdaState, supportedIsas } from '../src/index.js'
import { native } from '../src/native.js'
import { inputsOf, parametersOf, rowsFrom, shapeOf } from './layer.js'

const shape = shapeOf(3, 20, 4)
const width = 60
const tokens = 12
const inputs = inputsOf(shape, tokens)

const feed = (state: KdaState, from: number, count: number) => {
  const out = poisoned(count * width)
  createKda(shape, parametersOf(shape)).forward(rowsFrom(inputs, shape, from), state, out, count)
  return out
}
const empty = () => createKda(shape, parametersOf(shape)).createState()

describe('a state', () => {
  it('is zero at first, of the stated size and layout', () => {
    const state = empty()
    expect(state.recurrence).toHaveLength(3 * 20 * 20)
    expect(state.tails).toHaveLength(3 * 3 * width)
    expect(state.bytes).toBe(4 * 3 * 20 * (20 + 3 * 3))
    expect([...state.recurrence, ...state.tails].every((x) => x === 0)).toBe(true)
  })

  it('starts at the border of a cache line, and so does its copy', () => {
    for (const { recurrence, tails } of [empty(), empty().copy()])
      for (const array of [recurrence, tails]) expect(native().settleFloats(array)).toBe(0)
  })

  it('of 2 MiB and more lies on memory of its own, zero and as long as the state', () => {
    const wide = shapeOf(8, 256, 4)
    const state = createKda(wide, parametersOf(wide)).createState()
    state.recurrence[0] = 1
    state.recurrence[8 * 256 * 256 - 1] = 2
    const copy = state.copy()
    for (const { recurrence } of [state, copy]) {
      expect(recurrence).toHaveLength(8 * 256 * 256)
      expect(recurrence.reduce((sum, x) => sum + x, 0)).toBe(3)
      if (native().hugeFloats(2 ** 19) !== undefined) expect(recurrence.byteOffset).toBe(0)
    }
  })

  it('of 2 MiB and more gives its memory back when nobody has it any more', async () => {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const wide = shapeOf(8, 256, 4)
    const state = createKda(wide, parametersOf(wide)).createState()
    const copies = async (count: number) => {
      for (let i = 0; i < count; i++) {
        state.copy()
        collect()
        await setImmediate() // the engine frees buffers of others between turns of the event loop
      }
    }
    await copies(2)
    const before = process.memoryUsage.rss()
    await copies(64)
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 2 ** 20)
  })

  it('keeps the last inputs of the convolutions, oldest first', () => {
    const state = empty()
    feed(state, 0, 7)
    for (const [i, name] of (['q', 'k', 'v'] as const).entries()) {
      const tail = state.tails.subarray(i * 3 * width, (i + 1) * 3 * width)
      expect(sameBits(tail, inputs[name].subarray(4 * width, 7 * width))).toBe(true)
    }
    feed(state, 7, 1)
    const tail = state.tails.subarray(0, 3 * width)
    expect(sameBits(tail, inputs.q.subarray(5 * width, 8 * width))).toBe(true)
  })

  it('continues from a copy, and the copy is independent', () => {
    const state = empty()
    feed(state, 0, 5)
    const copy = state.copy()
    expect(copy.bytes).toBe(state.bytes)
    const want = feed(state, 5, 7)
    expect(sameBits(feed(copy, 5, 7), want)).toBe(true)
    expect(sameBits(copy.recurrence, state.recurrence)).toBe(true)
  })

  it('goes back to what it was restored from', () => {
    const state = empty()
    feed(state, 0, 5)
    const saved = state.copy()
    const want = feed(state, 5, 4)
    feed(state, 9, 3)
    state.restore(saved)
    expect(sameBits(feed(state, 5, 4), want)).toBe(true)
  })

  it('continues from saved bytes', () => {
    const state = empty()
    feed(state, 0, 5)
    const saved = [state.recurrence, state.tails].map((x) =>
      Uint8Array.from(new Uint8Array(x.buffer, x.byteOffset, x.byteLength))
    )
    const want = feed(state, 5, 7)
    const [recurrence, tails] = saved.map((bytes) => new Float32Array(bytes.buffer)) as Float32Array[]
    expect(sameBits(feed(new KdaState(recurrence!, tails!), 5, 7), want)).toBe(true)
  })

  it('does not change with a call of no tokens', () => {
    const state = empty()
    feed(state, 0, 5)
    const before = state.copy()
    expect(feed(state, 5, 0)).toHaveLength(0)
    expect(sameBits(state.recurrence, before.recurrence)).toBe(true)
    expect(sameBits(state.tails, before.tails)).toBe(true)
  })

  it('refuses to take over another shape', () => {
    const other = createKda(shapeOf(3, 20, 3), parametersOf(shapeOf(3, 20, 3))).createState()
    const larger = createKda(shapeOf(4, 20, 4), parametersOf(shapeOf(4, 20, 4))).createState()
    for (const from of [other, larger])
      expect(() => empty().restore(from)).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }))
  })
})

describe.each(supportedIsas())('a call on %s', (isa) => {
  const kda = createKda(shape, parametersOf(shape), { isa })

  it('writes the rows of its tokens and nothing behind them', () => {
    const out = new Float32Array(10 * width).fill(-7)
    kda.forward(inputs, kda.createState(), out, 5)
    expect(out.subarray(0, 5 * width).some((x) => x === -7 || Number.isNaN(x))).toBe(false)
    expect(out.subarray(5 * width).every((x) => x === -7)).toBe(true)
  })

  it('leaves its inputs alone', () => {
    const before = Object.values(inputs).map((x: Float32Array) => x.slice())
    kda.forward(inputs, kda.createState(), poisoned(tokens * width), tokens)
    for (const [i, x] of Object.values(inputs).entries()) expect(sameBits(x, before[i]!)).toBe(true)
  })

  it.each(['q', 'k', 'v', 'decay', 'beta', 'gate'] as const)(
    'hands NaN in %s on, in its head alone',
    (name) => {
      const clean = poisoned(tokens * width)
      kda.forward(inputs, kda.createState(), clean, tokens)
      const bad = { ...inputs, [name]: inputs[name].slice() }
      bad[name][name === 'beta' ? 2 * 3 + 1 : 2 * width + 20 + 13] = NaN
      const out = poisoned(tokens * width)
      const state = kda.createState()
      kda.forward(bad, state, out, tokens)
      // one token, the tokens the convolution carries it to, or for ever once it is in the state
      const last = name === 'gate' ? 2 : name === 'q' ? 2 + shape.convTaps - 1 : tokens
      const headOf = (x: Float32Array, t: number, h: number) =>
        x.slice(t * width + h * 20, t * width + (h + 1) * 20)
      for (let t = 0; t < tokens; t++) {
        expect(sameBits(headOf(out, t, 0), headOf(clean, t, 0))).toBe(true)
        expect(sameBits(headOf(out, t, 2), headOf(clean, t, 2))).toBe(true)
        expect(sameBits(headOf(out, t, 1), headOf(clean, t, 1))).toBe(t < 2 || t > last)
      }
      expect(headOf(out, 2, 1).some(Number.isNaN)).toBe(true)
      const poisonedState = state.recurrence.subarray(400, 800).some(Number.isNaN)
      expect(poisonedState).toBe(!['q', 'gate'].includes(name))
    }
  )
})
