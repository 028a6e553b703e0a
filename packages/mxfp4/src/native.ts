import { type Isa, loadAddon } from '@k3/native-kit'
import { root } from './root.js'

interface Native {
  createMatrix(
    codes: object,
    codesOffset: number,
    scales: object,
    scalesOffset: number,
    rows: number,
    cols: number,
    pool: object | undefined,
    isa: number,
    activations: number
  ): object
  /** false: no memory for the scratch */
  applyMatrix(handle: object, x: Float32Array, out: Float32Array, tokens: number): boolean
  createExperts(
    region: object,
    regionOffset: number,
    widths: Float64Array,
    betas: Float64Array,
    offsets: Float64Array,
    pool: object | undefined,
    isa: number,
    activations: number
  ): object
  reserveExperts(handle: object, tokens: number, pairs: number): boolean
  applyExperts(
    handle: object,
    z: Float32Array,
    tokens: number,
    count: number,
    bases: Float64Array,
    starts: Int32Array,
    tokenOf: Int32Array,
    out: Float32Array
  ): boolean
  combine(
    handle: object,
    pairs: Float32Array,
    pairOf: Int32Array,
    weights: Float32Array,
    out: Float32Array,
    tokens: number,
    k: number
  ): void
  firstNan(source: object, at: number, length: number): number
  decode(
    codes: object,
    codesOffset: number,
    scales: object,
    scalesOffset: number,
    groups: number,
    out: Float32Array
  ): void
  encode(values: Float32Array, groups: number, codes: Uint8Array, scales: Uint8Array): number
  isas(): Isa[]
}

export const native = loadAddon<Native>(root, '@k3/mxfp4')

/** Instruction sets this process can run, slowest first. All give the same bits. */
export const supportedIsas = (): readonly Isa[] => native().isas()
