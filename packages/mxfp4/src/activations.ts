import type { NativeOptions } from '@k3/native-kit'
import { Mxfp4Error } from './errors.js'

/**
 * 'exact': f32, the default. 'int8': every 32 neighbours of an input, hidden vectors of an expert included, are rounded to
 * 127 steps on either side of zero; faster, and an approximation.
 */
export type Activations = 'exact' | 'int8'

/** Settings of every product. */
export interface ProductOptions extends NativeOptions {
  readonly activations?: Activations
}

/** For tests. `vnni: false`: int8 activations are multiplied as on a CPU that has AVX-512 without VNNI. */
export interface TestedOptions extends ProductOptions {
  readonly vnni?: boolean
}

/**
 * The number C++ knows the activations by.
 * @throws ERR_MXFP4_ACTIVATIONS for anything but the two names
 */
export const resolveActivations = ({ activations = 'exact', vnni = true }: TestedOptions): number => {
  if (activations === 'exact') return 0
  if (activations === 'int8') return vnni ? 1 : 2
  throw new Mxfp4Error(
    'ERR_MXFP4_ACTIVATIONS',
    `activations must be 'exact' or 'int8', got ${String(activations)}`
  )
}
