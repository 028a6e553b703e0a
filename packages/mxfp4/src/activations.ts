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

/**
 * Whether the activations are 8-bit.
 * @throws ERR_MXFP4_ACTIVATIONS for anything but the two names
 */
export const isInt8 = ({ activations = 'exact' }: ProductOptions): boolean => {
  if (activations === 'exact' || activations === 'int8') return activations === 'int8'
  throw new Mxfp4Error(
    'ERR_MXFP4_ACTIVATIONS',
    `activations must be 'exact' or 'int8', got ${String(activations)}`
  )
}
