import type { ModelOptions } from '@k3/engine'

/** An instruction set, or the best there is. */
export type Isa = NonNullable<ModelOptions['isa']>
