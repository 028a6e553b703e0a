import type { VectorOps } from '@k3/vector-ops'
import type { K3Config } from './config.js'
import type { WeightSource } from './interfaces.js'
import type { Scratch } from './scratch.js'
import type { Watch } from './spans.js'

/** What the layers of one model share. */
export interface LayerParts {
  readonly config: K3Config
  readonly weights: WeightSource
  readonly ops: VectorOps
  readonly scratch: Scratch
  readonly native: NativeChoice
  readonly watch: Watch
}

/** The pool and the instruction set every native op of a model is bound to. */
export interface NativeChoice {
  readonly pool: { readonly handle: object; readonly threads: number }
  readonly isa: 'auto' | 'scalar' | 'avx2' | 'avx512' | 'neon'
}
