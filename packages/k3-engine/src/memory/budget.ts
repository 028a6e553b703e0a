import { K3Error } from '../errors.js'

/** Memory to use: bytes, `auto` and `max` for what the machine has, or a preset. */
export type Ram = number | 'auto' | 'max' | keyof typeof RAM_PRESETS

/** Presets in bytes, by the machine they are named after. */
export const RAM_PRESETS = {
  laptop: 8e9,
  desktop: 32e9,
  workstation: 64e9,
  'workstation-96': 96e9,
  server: 128e9
} as const

/** A budget in bytes and where it comes from. */
export interface Budget {
  readonly bytes: number
  readonly reason: string
}

// Left for everything else on the machine: a sixteenth, within these bounds; the least of it also with `max`.
const LEAST_HEADROOM = 128e6
const MOST_HEADROOM = 8e9

/**
 * The budget in bytes; it may be more than the machine has.
 * @throws ERR_K3_OPTION for anything that is neither a number of bytes nor a known name
 */
export const budgetOf = (ram: Ram, usable: { readonly bytes: number; readonly source: string }): Budget => {
  const { bytes, source } = usable
  if (ram === 'auto') {
    const headroom = Math.min(MOST_HEADROOM, Math.max(LEAST_HEADROOM, bytes / 16))
    return { bytes: Math.max(0, Math.floor(bytes - headroom)), reason: `auto: ${source} less headroom` }
  }
  if (ram === 'max') return { bytes: Math.max(0, bytes - LEAST_HEADROOM), reason: `max: ${source}` }
  if (typeof ram === 'number' && Number.isSafeInteger(ram) && ram > 0)
    return { bytes: ram, reason: 'as given' }
  if (typeof ram === 'string' && Object.hasOwn(RAM_PRESETS, ram)) {
    return { bytes: RAM_PRESETS[ram], reason: `the preset ${ram}` }
  }
  const need = `a number of bytes, auto, max or one of ${Object.keys(RAM_PRESETS).join(', ')}`
  throw new K3Error('ERR_K3_OPTION', `ram must be ${need}, got ${String(ram)}`, {
    field: 'ram',
    have: ram,
    need
  })
}
