import { describe, expect, it } from 'vitest'
import { bitsOf, poisoned } from '../../native-kit/test-kit/arrays.js'
import { deviation } from '../../native-kit/test-kit/goldens.js'
import type { TestedOptions } from '../src/activations.js'
import { createExpertMlp, createMatrix, decode, supportedIsas } from '../src/index.js'
import { expert, inEightBits, matvecExact } from '../src/reference.js'
import { firstDifference, misaligned, pools, randomMatrix, randomNumbers } from './arrays.js'
import { batchOf, betas, latents, randomExperts } from './experts.js'
import { dotInt8 } from './lane-order.js'

const activations = 'int8' as const
const tokenCounts = [1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 65]
const parallel = pools()
/** Every instruction set, and AVX-512 once more as on a CPU without VNNI. */
const variants: { name: string; options: TestedOptions }[] = supportedIsas().flatMap((isa) => {
  const whole = { name: isa, options: { isa, activations } }
  if (isa !== 'avx512') return [whole]
  return [whole, { name: 'avx512 without VNNI', options: { ...whole.options, vnni: false } }]
})
type Matrix = ReturnType<typeof randomMatrix>

/** W x in the order of docs/NUMERICS.md, by the test's own arithmetic. */
const documented = (spec: Matrix, x: Float32Array, tokens: number): Float32Array => {
  const { rows, cols } = spec
  const values = poisoned(rows * cols)
  decode(spec.packed, new Uint8Array(spec.scales.length).fill(127), { rows, cols }, values)
  const scales = Float32Array.from(spec.scales, (s) => 2 ** (s - 127))
  return Float32Array.from({ length: tokens * rows }, (_, i) => {
    const [t, r] = [Math.floor(i / rows), i % rows]
    const groups = scales.subarray((r * cols) / 32, ((r + 1) * cols) / 32)
    return dotInt8(values.subarray(r * cols, (r + 1) * cols), groups, x.subarray(t * cols, (t + 1) * cols))
  })
}

/** W x for each token alone on the scalar path. */
const oneByOne = (spec: Matrix, x: Float32Array, tokens: number): Float32Array => {
  const matrix = createMatrix(spec, { isa: 'scalar', activations })
  const out = poisoned(tokens * spec.rows)
  for (let t = 0; t < tokens; t++) matrix.apply(x.subarray(t * spec.cols), out.subarray(t * spec.rows), 1)
  return out
}

describe.each(variants)('int8 activations on $name', ({ options }) => {
  it.each([
    [1, 32],
    [3, 64],
    [17, 96],
    [33, 160],
    [5, 224],
    [7, 3072],
    [18, 3584]
  ])('give %i x %i the bits of the documented order for any tokens, threads, address', (rows, cols) => {
    const spec = randomMatrix(rows, cols, rows + cols)
    const shifted = { ...spec, packed: misaligned(spec.packed, 1), scales: misaligned(spec.scales, 3) }
    const most = Math.max(...tokenCounts)
    const x = randomNumbers(most * cols, 5)
    const want = oneByOne(spec, x, most)
    expect(bitsOf(want.subarray(0, 3 * rows))).toEqual(bitsOf(documented(spec, x, 3)))
    for (const { name, pool } of parallel) {
      const matrix = createMatrix(name === 'no pool' ? spec : shifted, {
        ...options,
        ...(pool && { pool })
      })
      for (const tokens of tokenCounts) {
        const out = poisoned(tokens * rows + 1)
        matrix.apply(x.subarray(0, tokens * cols), out, tokens)
        expect(firstDifference(out, want.subarray(0, tokens * rows)), `${tokens} tokens, ${name}`).toBe(-1)
        expect(out[tokens * rows]).toBeNaN()
      }
    }
  })

  it('agree with their double-precision twin, and with exact activations to a percent', () => {
    const spec = randomMatrix(40, 3072, 77)
    const x = randomNumbers(3072, 78)
    const out = poisoned(40)
    createMatrix(spec, options).apply(x, out, 1)
    expect(deviation(out, matvecExact(spec, inEightBits(x))).relativeL2).toBeLessThan(1e-6)
    const { relativeL2 } = deviation(out, matvecExact(spec, x))
    expect(relativeL2).toBeLessThan(0.01)
    expect(relativeL2).toBeGreaterThan(1e-4)
  })

  it('take every code at every scale', () => {
    const rows = 255
    const packed = Uint8Array.from({ length: rows * 16 }, (_, i) => i)
    const scales = Uint8Array.from({ length: rows }, (_, row) => row)
    const spec = { packed, scales, rows, cols: 32 }
    const x = Float32Array.from({ length: 32 }, (_, c) => (c % 2 === 0 ? 127 : -1) * 2 ** -9)
    const out = poisoned(rows)
    createMatrix(spec, options).apply(x, out, 1)
    expect(bitsOf(out)).toEqual(bitsOf(documented(spec, x, 1)))
  })

  it('sum the largest integers without saturating', () => {
    const cols = 3584
    const signs = [0, 1, 2, 3]
    const sign = (of: number, column: number) => ((of >> (column & 1)) & 1 ? -1 : 1)
    // rows of 6 and -6, inputs of 127 steps: even and odd columns with every pair of signs
    const packed = Uint8Array.from(
      { length: 2 * cols },
      (_, i) => [0x77, 0x7f, 0xf7, 0xff][((2 * i) / cols) | 0]!
    )
    const scales = new Uint8Array(cols / 8).fill(127)
    const x = Float32Array.from({ length: 4 * cols }, (_, i) => 127 * sign((i / cols) | 0, i))
    const out = poisoned(16)
    createMatrix({ packed, scales, rows: 4, cols }, options).apply(x, out, 4)
    const want = signs.flatMap((t) =>
      signs.map((r) => ((sign(t, 0) * sign(r, 0) + sign(t, 1) * sign(r, 1)) * 6 * 127 * cols) / 2)
    )
    expect([...out]).toEqual(want)
  })

  it('keep the ends of the range: zeros, the smallest and the largest numbers', () => {
    const spec = { ...randomMatrix(3, 64, 9), packed: new Uint8Array(96).fill(0x22) }
    const rows = (x: Float32Array) => {
      const out = poisoned(3)
      createMatrix({ ...spec, scales: new Uint8Array(6).fill(120) }, options).apply(x, out, 1)
      return [...out]
    }
    expect(rows(new Float32Array(64))).toEqual([0, 0, 0])
    expect(rows(new Float32Array(64).fill(2 ** -101))).toEqual([0, 0, 0])
    const small = 2 ** -100
    expect(rows(new Float32Array(64).fill(small))[0]! / (small / 2)).toBeCloseTo(1, 6)
    const largest = new Float32Array(64)
    largest[40] = 3.4e38
    expect(rows(largest)[0]! / (3.4e38 / 128)).toBeCloseTo(1, 6)
  })

  it.each([NaN, Infinity, -Infinity])('let %d through to the rows it touches', (bad) => {
    const spec = { ...randomMatrix(3, 64, 9), packed: new Uint8Array(96).fill(0x22) }
    const x = new Float32Array(128).fill(1)
    x[70] = bad
    const out = poisoned(6)
    createMatrix(spec, options).apply(x, out, 2)
    expect([...out].map(Number.isNaN)).toEqual([false, false, false, true, true, true])
  })

  it.each([
    [1, 32, 32],
    [3, 96, 160],
    [5, 160, 128],
    [9, 32, 224],
    [17, 64, 32]
  ])('give %i experts, %i x %i, the bits of each pair alone for any threads', (experts, latent, inner) => {
    const { spec, region, bases } = randomExperts(experts, latent, inner, experts)
    const z = latents(11, latent, 4)
    const counts = Array.from({ length: experts }, (_, e) => [1, 2, 0, 3, 7, 1, 4, 41][e % 8]!)
    const batch = batchOf(bases, counts, 11)
    const want = poisoned(batch.starts[experts]! * latent)
    const alone = createExpertMlp(spec, region, { isa: 'scalar', activations })
    for (let e = 0; e < experts; e++)
      for (let p = batch.starts[e]!; p < batch.starts[e + 1]!; p++) {
        const starts = Int32Array.of(0, 1)
        const one = { count: 1, bases: bases.subarray(e), starts, tokens: Int32Array.of(0) }
        alone.apply(z.subarray(batch.tokens[p]! * latent), one, want.subarray(p * latent))
      }
    for (const { name, pool } of parallel) {
      const out = poisoned(want.length + 1)
      createExpertMlp(spec, region, { ...options, ...(pool && { pool }) }).apply(z, batch, out)
      expect(firstDifference(out, want), name).toBe(-1)
      expect(out[want.length]).toBeNaN()
    }
  })

  it('keep an expert within two percent of the exact one', () => {
    const { spec, region, bases } = randomExperts(1, 96, 160, 31)
    const matrix = (packed: number, scales: number, rows: number, cols: number) => ({
      packed: region.subarray(packed, packed + (rows * cols) / 2),
      scales: region.subarray(scales, scales + (rows * cols) / 32),
      rows,
      cols
    })
    const { w1Packed, w1Scale, w2Packed, w2Scale, w3Packed, w3Scale } = spec.layout
    const w1 = matrix(w1Packed, w1Scale, 160, 96)
    const w2 = matrix(w2Packed, w2Scale, 96, 160)
    const w3 = matrix(w3Packed, w3Scale, 160, 96)
    const z = latents(1, 96, 32)
    const out = poisoned(96)
    createExpertMlp(spec, region, options).apply(z, batchOf(bases, [1], 1), out)
    const { relativeL2 } = deviation(out, expert([w1, w2, w3], z, betas.beta, betas.linearBeta))
    expect(relativeL2).toBeLessThan(0.02)
    expect(relativeL2).toBeGreaterThan(1e-4)
  })
})

describe('the activations', () => {
  it('are exact unless asked for otherwise', () => {
    const spec = randomMatrix(5, 64, 3)
    const x = randomNumbers(64, 4)
    const run = (options: object) => {
      const out = poisoned(5)
      createMatrix(spec, options).apply(x, out, 1)
      return bitsOf(out)
    }
    expect(run({})).toEqual(run({ activations: 'exact' }))
    expect(run({})).not.toEqual(run({ activations }))
  })

  it('are refused under any other name', () => {
    const { spec, region } = randomExperts(1, 32, 32, 1)
    for (const other of ['INT8', 'int4', '', null, 8] as never[]) {
      const refused = expect.objectContaining({ code: 'ERR_MXFP4_ACTIVATIONS' })
      expect(() => createMatrix(randomMatrix(1, 32, 1), { activations: other })).toThrow(refused)
      expect(() => createExpertMlp(spec, region, { activations: other })).toThrow(refused)
    }
  })
})
