import {
  aboveZero,
  apart,
  atLeast,
  count,
  type Isa,
  type NativeOptions,
  poolHandle,
  resolveIsa
} from '@k3/native-kit'
import { apartOrSame, atMost } from './arguments.js'
import { native } from './native.js'
import { bindRouter, type Router, type RouterSpec } from './router.js'

/** The two limits of SiTU-GLU: the gate saturates at ±beta, the other half at ±linearBeta. */
export interface SituBetas {
  readonly beta: number
  readonly linearBeta: number
}

/**
 * The equations, bound to a pool and an instruction set. Arrays may be longer than needed; an output is fully
 * overwritten as far as it is needed. The bits do not depend on threads, on the instruction set or on `tokens`.
 * All throw TypeError (ERR_INVALID_ARG_TYPE) for another kind of array, RangeError (ERR_OUT_OF_RANGE) for a short array
 * or an output that overlaps an input other than as stated, and ERR_TASK_POOL_CLOSED when the pool was closed.
 */
export interface VectorOps {
  /**
   * out = x / sqrt(mean(x²) + eps) · weight, for each token. x, out: f32 [tokens, dim]; weight: f32 [dim], whose length
   * is dim; out may be x. Source: docs/spec/SPEC.md §4.
   */
  rmsNorm(x: Float32Array, weight: Float32Array, eps: number, out: Float32Array, tokens: number): void
  /**
   * Block attention residuals: out = Σ softmax(a)_s v_s with a_s = keyWeight · v_s / sqrt(mean(v_s²) + eps), for each
   * token. sources: 1 to 64 of f32 [tokens, dim], oldest first; keyWeight: f32 [dim], see `foldKeyWeight`, whose length
   * is dim; out: f32 [tokens, dim], may be one of the sources. Source: docs/spec/SPEC.md §5.
   */
  residualMix(
    sources: readonly Float32Array[],
    keyWeight: Float32Array,
    eps: number,
    out: Float32Array,
    tokens: number
  ): void
  /** The softmax weights of `residualMix` alone. out: f32 [tokens, sources.length] */
  mixWeights(
    sources: readonly Float32Array[],
    keyWeight: Float32Array,
    eps: number,
    out: Float32Array,
    tokens: number
  ): void
  /**
   * out = beta tanh(gate / beta) σ(gate) · linearBeta tanh(up / linearBeta). gate, up, out: f32 [length]; out may be
   * gate or up. Source: docs/spec/SPEC.md §8.1.
   */
  situGlu(gate: Float32Array, up: Float32Array, betas: SituBetas, out: Float32Array, length: number): void
  /** out = a + b. f32 [length] each; out may be a or b. */
  add(a: Float32Array, b: Float32Array, out: Float32Array, length: number): void
  /** out = e^x, within 1.1 ulp. f32 [length] each; out may be x. NaN gives NaN, overflow infinity. */
  exp(x: Float32Array, out: Float32Array, length: number): void
  /** out = 1 / (1 + e^-x), within 2.5 ulp. f32 [length] each; out may be x. NaN gives NaN. */
  sigmoid(x: Float32Array, out: Float32Array, length: number): void
  /** out = tanh(x), within 2.5 ulp. f32 [length] each; out may be x. NaN gives NaN. */
  tanh(x: Float32Array, out: Float32Array, length: number): void
  /**
   * A router with the pool and the instruction set of these ops.
   * @throws RangeError (ERR_OUT_OF_RANGE) when k is not 1 to min(experts, 256) or the factor is not positive
   */
  createRouter(spec: RouterSpec): Router
}

/** Instruction sets this process can run, slowest first. */
export const supportedIsas = (): readonly Isa[] => native().isas()

/**
 * Binds the equations to a pool (none: the calling thread) and an instruction set ('auto': the best there is).
 * @throws RangeError (ERR_ISA_UNSUPPORTED) when this process cannot run that instruction set, TypeError
 * (ERR_INVALID_HANDLE) for a foreign pool, ERR_NATIVE_LOAD when there is no binary for this platform
 */
export const createVectorOps = (options: NativeOptions = {}): VectorOps => {
  const isa = resolveIsa(options.isa, supportedIsas())
  const pool = poolHandle(options.pool)
  const ops = native().create(pool, isa)
  return {
    ...rowOps(ops),
    ...elementOps(ops),
    createRouter: (spec) => bindRouter(spec, pool, isa)
  }
}

const maxSources = 64 // the kernel's pointer table; Kimi-K3 mixes at most 9

const rowOps = (ops: object): Pick<VectorOps, 'rmsNorm' | 'residualMix' | 'mixWeights'> => {
  const checkSources = (sources: readonly Float32Array[], keyWeight: Float32Array, tokens: number) => {
    atLeast('keyWeight', keyWeight, 1)
    count('tokens', tokens, 0)
    count('sources.length', sources.length, 1)
    atMost('sources.length', sources.length, maxSources)
    for (const source of sources) atLeast('sources[i]', source, tokens * keyWeight.length)
  }
  return {
    rmsNorm(x, weight, eps, out, tokens) {
      atLeast('weight', weight, 1)
      count('tokens', tokens, 0)
      aboveZero('eps', eps)
      const dim = weight.length
      atLeast('x', x, tokens * dim)
      atLeast('out', out, tokens * dim)
      apartOrSame('x', x, out, tokens * dim)
      apart('weight', weight, dim, out, tokens * dim)
      native().rmsNorm(ops, x, weight, eps, out, tokens, dim)
    },
    residualMix(sources, keyWeight, eps, out, tokens) {
      checkSources(sources, keyWeight, tokens)
      aboveZero('eps', eps)
      const dim = keyWeight.length
      atLeast('out', out, tokens * dim)
      for (const source of sources) apartOrSame('sources[i]', source, out, tokens * dim)
      apart('keyWeight', keyWeight, dim, out, tokens * dim)
      native().residualMix(ops, sources, keyWeight, eps, out, tokens, dim)
    },
    mixWeights(sources, keyWeight, eps, out, tokens) {
      checkSources(sources, keyWeight, tokens)
      aboveZero('eps', eps)
      const dim = keyWeight.length
      const written = tokens * sources.length
      atLeast('out', out, written)
      for (const source of sources) apart('sources[i]', source, tokens * dim, out, written)
      apart('keyWeight', keyWeight, dim, out, written)
      native().mixWeights(ops, sources, keyWeight, eps, out, tokens, dim)
    }
  }
}

type ElementOps = Pick<VectorOps, 'situGlu' | 'add' | 'exp' | 'sigmoid' | 'tanh'>

const elementOps = (ops: object): ElementOps => {
  const check = (name: string, x: Float32Array, out: Float32Array, length: number) => {
    count('length', length, 0)
    atLeast(name, x, length)
    atLeast('out', out, length)
    apartOrSame(name, x, out, length)
  }
  return {
    situGlu(gate, up, betas, out, length) {
      const { beta, linearBeta } = Object(betas) as SituBetas
      check('gate', gate, out, length)
      check('up', up, out, length)
      aboveZero('beta', beta)
      aboveZero('linearBeta', linearBeta)
      native().situGlu(ops, gate, up, beta, linearBeta, out, length)
    },
    add(a, b, out, length) {
      check('a', a, out, length)
      check('b', b, out, length)
      native().add(ops, a, b, out, length)
    },
    exp(x, out, length) {
      check('x', x, out, length)
      native().exp(ops, x, out, length)
    },
    sigmoid(x, out, length) {
      check('x', x, out, length)
      native().sigmoid(ops, x, out, length)
    },
    tanh(x, out, length) {
      check('x', x, out, length)
      native().tanh(ops, x, out, length)
    }
  }
}
