import assert from 'node:assert/strict'
import type { WeightSource } from '../interfaces.js'
import type { ConformanceCase } from './conformance-case.js'

/** A source, and two matrices of it that read the same input; `matrix` gives their values, f32 [out, in]. */
export interface WeightSourceUnderTest {
  readonly source: WeightSource
  readonly names: readonly [string, string]
  readonly shapes: readonly [readonly [number, number], readonly [number, number]]
  readonly matrix: (name: string) => Float32Array
  /** How far an output may be from the double-precision product, relative to the output's norm: 1e-6 for exact weights. */
  readonly tolerance: number
}

const TOKENS = 3

/** Checks for a `WeightSource`; `open` is called once for each. */
export const weightSourceCases = (open: () => Promise<WeightSourceUnderTest>): readonly ConformanceCase[] => [
  {
    name: 'weight source multiplies as the matrices say',
    run: async () => {
      const part = await open()
      const x = inputs(part)
      const outs = outputs(part)
      part.source.linears(part.names).apply(x, outs, TOKENS)
      part.names.forEach((name, i) => {
        const error = relativeError(part.matrix(name), part.shapes[i]!, x, outs[i]!)
        assert.ok(error <= part.tolerance, `${name}: relative error ${error}`)
      })
    }
  },
  {
    name: 'weight source gives the same bits for one token and for many, alone and in a group',
    run: async () => {
      const part = await open()
      const x = inputs(part)
      const many = outputs(part)
      part.source.linears(part.names).apply(x, many, TOKENS)
      part.names.forEach((name, i) => {
        const [rows, cols] = part.shapes[i]!
        for (let token = 0; token < TOKENS; token++) {
          const one = new Float32Array(rows).fill(Number.NaN)
          part.source.linears([name]).apply(x.subarray(token * cols), [one], 1)
          assert.deepEqual(one, many[i]!.slice(token * rows, (token + 1) * rows))
        }
      })
    }
  }
]

const inputs = ({ shapes }: WeightSourceUnderTest): Float32Array =>
  Float32Array.from({ length: TOKENS * shapes[0][1] }, (_, i) => Math.cos(i))

const outputs = ({ shapes }: WeightSourceUnderTest): Float32Array[] =>
  shapes.map(([rows]) => new Float32Array(TOKENS * rows).fill(Number.NaN))

const relativeError = (
  weights: Float32Array,
  [rows, cols]: readonly [number, number],
  x: Float32Array,
  out: Float32Array
): number => {
  let error = 0
  let norm = 0
  for (let token = 0; token < TOKENS; token++) {
    for (let row = 0; row < rows; row++) {
      let want = 0
      for (let c = 0; c < cols; c++) want += weights[row * cols + c]! * x[token * cols + c]!
      error += (out[token * rows + row]! - want) ** 2
      norm += want ** 2
    }
  }
  return Math.sqrt(error / norm)
}
