import { type FloatMemory, type Isa, loadAddon } from '@k3/native-kit'
import { root } from './root.js'

export type { Isa } from '@k3/native-kit'

type Floats = Float32Array
type Pool = object | undefined

interface Native extends FloatMemory {
  create(...shapeParametersPoolIsa: readonly unknown[]): object
  forward(op: object, ...rows: readonly (Floats | number)[]): void
  recurrence(op: object, ...rows: readonly (Floats | number)[]): void
  decayGate(op: object, z: Floats, g: Floats, tokens: number): void
  shortConv(x: Floats, tail: Floats, weight: Floats, out: Floats, ...rest: readonly (number | Pool)[]): void
  l2Normalize(x: Floats, out: Floats, ...rest: readonly number[]): void
  isas(): Isa[]
}

export const native = loadAddon<Native>(root, '@k3/kda')

/** Instruction sets this process can run, slowest first. */
export const supportedIsas = (): readonly Isa[] => native().isas()
