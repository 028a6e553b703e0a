import { type FloatMemory, type Isa, loadAddon } from '@k3/native-kit'
import { root } from './root.js'

export type { Isa } from '@k3/native-kit'

interface Native extends FloatMemory {
  create(...shapeParametersPoolIsa: readonly unknown[]): object
  forward(
    op: object,
    queries: Float32Array,
    kv: Float32Array,
    gate: Float32Array,
    ...cacheOutTokens: readonly (Float32Array | number)[]
  ): void
  isas(): Isa[]
}

export const native = loadAddon<Native>(root, '@k3/mla')

/** Instruction sets this process can run, slowest first. */
export const supportedIsas = (): readonly Isa[] => native().isas()
