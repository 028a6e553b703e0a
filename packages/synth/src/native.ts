import { type Isa, loadAddon } from '@k3/native-kit'
import { root } from './root.js'

interface Native {
  create(pool: object | undefined, isa: number): object
  fill(handle: object, parameters: Float64Array, firstWord: number, out: Uint8Array): void
  isas(): Isa[]
}

export const native = loadAddon<Native>(root, '@k3/synth')
