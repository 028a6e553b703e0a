import { type Isa, loadAddon } from '@k3/native-kit'
import { root } from './root.js'

interface Native {
  create(
    source: object,
    offset: number,
    rows: number,
    cols: number,
    pool: object | undefined,
    isa: number
  ): object
  apply(handle: object, x: Float32Array, out: Float32Array, tokens: number): void
  applyGroup(handles: readonly object[], x: Float32Array, outs: readonly Float32Array[], tokens: number): void
  widen(source: object, offset: number, out: Float32Array): void
  isas(): Isa[]
}

export const native = loadAddon<Native>(root, '@k3/bf16-linear')
