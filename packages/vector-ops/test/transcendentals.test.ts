import { describe, expect, it } from 'vitest'
import { bitsOf, poisoned, sameBits, words } from '../../native-kit/test-kit/arrays.js'
import { ulp } from '../../native-kit/test-kit/goldens.js'
import { createVectorOps, supportedIsas } from '../src/index.js'
import { sigmoid } from '../src/reference.js'

type Name = 'exp' | 'sigmoid' | 'tanh'

// Largest errors over all 2^32 floats by benchmarks/transcendentals.cc, rounded up: a sample cannot be worse.
const functions = [
  { name: 'exp', oracle: Math.exp, ulps: 1.06 },
  { name: 'sigmoid', oracle: sigmoid, ulps: 2.41 },
  { name: 'tanh', oracle: Math.tanh, ulps: 2.5 }
] as const

const smallest = 2 ** -149
const largestSubnormal = 2 ** -126 - smallest
const edges = [
  ...[
    0,
    smallest,
    2 * smallest,
    3 * smallest,
    1e-42,
    largestSubnormal,
    2 ** -126,
    1e-30,
    2 ** -24,
    1e-7,
    1e-3
  ],
  ...[0.5, 1, 9, 9.1, 20, 44, 87, 87.34, 88, 88.72, 88.73, 89, 100, 103, 103.97, 103.98, 104, 105, 106],
  ...[1e4, 3e38, 3.4028234663852886e38, Infinity]
]

/** 2 million points: a third any bit pattern, a third each within ±1 and ±110 where the functions move; no NaN. */
const points = () => {
  const next = words(2024)
  const x = new Float32Array(2_000_000)
  const pattern = bitsOf(x)
  for (let i = 0; i < x.length; i++) {
    if (i % 3 === 0) pattern[i] = next()
    else x[i] = (next() / 2 ** 31 - 1) * (i % 3 === 1 ? 1 : 110)
    if (Number.isNaN(x[i])) x[i] = 0
  }
  x.set(edges)
  x.set(
    edges.map((e) => -e),
    edges.length
  )
  return x
}

const apply = (name: Name, isa: ReturnType<typeof supportedIsas>[number], x: Float32Array) => {
  const out = poisoned(x.length)
  createVectorOps({ isa })[name](x, out, x.length)
  return out
}

/** Error in ulp of the true value; when that rounds to infinity or to the last finite float, all or nothing. */
const errorIn = (got: number, want: number) => {
  const rounded = Math.fround(want)
  if (Object.is(got, rounded)) return 0
  return Number.isFinite(got) && Number.isFinite(rounded)
    ? Math.abs(got - want) / ulp(Math.abs(want))
    : Infinity
}

describe.each(functions)('$name', ({ name, oracle, ulps }) => {
  const x = points()
  const scalar = apply(name, 'scalar', x)

  it(`is within ${ulps} ulp of double precision at 2 million points`, () => {
    let worst = 0
    let at = 0
    for (let i = 0; i < x.length; i++) {
      const error = errorIn(scalar[i]!, oracle(x[i]!))
      if (error <= worst) continue
      worst = error
      at = x[i]!
    }
    expect(worst, `at ${at}`).toBeLessThanOrEqual(ulps)
    expect(worst).toBeGreaterThan(0.5)
  })

  it.each(supportedIsas())('has the same bits on %s', (isa) => {
    expect(sameBits(apply(name, isa, x), scalar)).toBe(true)
  })

  it.each(supportedIsas())('gives NaN for NaN on %s', (isa) => {
    expect(apply(name, isa, new Float32Array(21).fill(NaN)).every(Number.isNaN)).toBe(true)
  })
})

describe.each(supportedIsas())('limits on %s', (isa) => {
  const at = (name: Name, x: number) => apply(name, isa, Float32Array.of(x))[0]

  it('exp reaches infinity, zero and the subnormals where it must', () => {
    expect(at('exp', 0)).toBe(1)
    expect(at('exp', 88.72283172607422)).toBeLessThan(Infinity)
    expect(at('exp', 88.72283935546875)).toBe(Infinity)
    expect(at('exp', Infinity)).toBe(Infinity)
    expect(at('exp', -87.5)).toBe(Math.fround(Math.exp(-87.5)))
    expect(at('exp', -103.9)).toBe(smallest)
    expect(at('exp', -104)).toBe(0)
    expect(at('exp', -Infinity)).toBe(0)
  })

  it('sigmoid saturates at 1 above and falls through the subnormals below', () => {
    expect(at('sigmoid', 0)).toBe(0.5)
    expect(at('sigmoid', 200)).toBe(1)
    expect(at('sigmoid', Infinity)).toBe(1)
    expect(at('sigmoid', -100)).toBe(Math.fround(Math.exp(-100)))
    expect(at('sigmoid', -Infinity)).toBe(0)
  })

  it('tanh keeps tiny numbers, their sign and the sign of zero', () => {
    for (const tiny of [smallest, 3 * smallest, largestSubnormal, 2 ** -126, 1e-20, 1e-5]) {
      expect(at('tanh', Math.fround(tiny))).toBe(Math.fround(tiny))
      expect(at('tanh', -Math.fround(tiny))).toBe(-Math.fround(tiny))
    }
    expect(at('tanh', -0)).toBe(-0)
    expect(at('tanh', 0)).toBe(0)
    expect(at('tanh', Infinity)).toBe(1)
    expect(at('tanh', -3e38)).toBe(-1)
  })
})

// A limit that is a power of two has an exact inverse, and the kernel multiplies by it instead of dividing.
describe.each(supportedIsas())('%s situGlu', (isa) => {
  it.each([
    [4, 25],
    [3, 8],
    [2 ** 127, 0.375],
    [2 ** -126, 2 ** -149]
  ])('divides by limits %d and %d to the bit', (beta, linearBeta) => {
    const [gate, up] = [points(), points().reverse()]
    const capped = (x: Float32Array, limit: number) => {
      const over = x.map((v) => v / limit)
      return apply('tanh', isa, over).map((v) => v * limit)
    }
    const [g, u, s] = [capped(gate, beta), capped(up, linearBeta), apply('sigmoid', isa, gate)]
    const want = g.map((v, i) => Math.fround(v * s[i]!) * u[i]!)
    const out = poisoned(gate.length)
    createVectorOps({ isa }).situGlu(gate, up, { beta, linearBeta }, out, out.length)
    expect(sameBits(out, want)).toBe(true)
  })
})
