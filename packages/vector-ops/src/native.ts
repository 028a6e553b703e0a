import { type Isa, loadAddon } from '@k3/native-kit'
import { root } from './root.js'

type Numbers = Float32Array

interface Native {
  create(pool: object | undefined, isa: number): object
  rmsNorm(
    ops: object,
    x: Numbers,
    weight: Numbers,
    eps: number,
    out: Numbers,
    tokens: number,
    dim: number
  ): void
  residualMix(
    ops: object,
    sources: readonly Numbers[],
    key: Numbers,
    eps: number,
    out: Numbers,
    tokens: number,
    dim: number
  ): void
  mixWeights: Native['residualMix']
  situGlu(
    ops: object,
    gate: Numbers,
    up: Numbers,
    beta: number,
    linearBeta: number,
    out: Numbers,
    length: number
  ): void
  add(ops: object, a: Numbers, b: Numbers, out: Numbers, length: number): void
  exp(ops: object, x: Numbers, out: Numbers, length: number): void
  sigmoid: Native['exp']
  tanh: Native['exp']
  createRouter(
    pool: object | undefined,
    isa: number,
    bias: Numbers,
    k: number,
    renormalize: boolean,
    factor: number
  ): object
  route(router: object, logits: Numbers, indices: Int32Array, weights: Numbers, tokens: number): number
  createReading(
    pool: object | undefined,
    isa: number,
    source: object,
    ...offsetBytesStreams: readonly number[]
  ): object
  readAll(reading: object): number
  multiplyAdd(ops: object, steps: number): number
  isas(): Isa[]
}

export const native = loadAddon<Native>(root, '@k3/vector-ops')
