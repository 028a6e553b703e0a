import assert from 'node:assert/strict'
import type { Layer } from '../interfaces.js'
import type { ConformanceCase } from './conformance-case.js'

/** A layer and its width; it must take at least 5 tokens in one call. */
export interface LayerUnderTest {
  readonly layer: Layer
  readonly hiddenSize: number
}

const TOKENS = 5

/** Checks for a `Layer`; `create` is called once for each. */
export const layerCases = (create: () => LayerUnderTest): readonly ConformanceCase[] => {
  const input = (width: number) => Float32Array.from({ length: TOKENS * width }, (_, i) => Math.sin(1 + i))
  const poisoned = (length: number) => new Float32Array(length).fill(Number.NaN)
  const runInPieces = ({ layer, hiddenSize }: LayerUnderTest, sizes: readonly number[]): Float32Array => {
    const x = input(hiddenSize)
    const out = poisoned(TOKENS * hiddenSize)
    const state = layer.createState()
    let token = 0
    for (const size of sizes) {
      layer.forward(x.subarray(token * hiddenSize), state, out.subarray(token * hiddenSize), size)
      token += size
    }
    return out
  }
  return [
    {
      name: 'layer gives the same bits however the tokens are cut',
      run: async () => {
        const part = create()
        const whole = runInPieces(part, [TOKENS])
        assert.ok(whole.every(Number.isFinite), 'every output is written')
        assert.deepEqual(runInPieces(part, [1, 1, 1, 1, 1]), whole)
        assert.deepEqual(runInPieces(part, [2, 3]), whole)
      }
    },
    {
      name: 'layer leaves its input and the rows behind the last token alone',
      run: async () => {
        const { layer, hiddenSize } = create()
        const x = input(hiddenSize)
        const out = poisoned(TOKENS * hiddenSize)
        layer.forward(x, layer.createState(), out, 2)
        assert.deepEqual(x, input(hiddenSize))
        assert.ok(out.subarray(2 * hiddenSize).every(Number.isNaN))
      }
    },
    {
      name: 'layer state is independent of its copy',
      run: async () => {
        const { layer, hiddenSize } = create()
        const state = layer.createState()
        if (state === null) return
        const x = input(hiddenSize)
        const [first, second] = [poisoned(hiddenSize), poisoned(hiddenSize)]
        layer.forward(x, state, first, 1)
        const copy = state.copy()
        layer.forward(x.subarray(hiddenSize), state, first, 1)
        layer.forward(x.subarray(hiddenSize), copy, second, 1)
        assert.deepEqual(second, first)
      }
    }
  ]
}
