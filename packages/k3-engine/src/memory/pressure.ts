import { existsSync, readFileSync } from 'node:fs'
import { readMemory } from './available.js'
import { ControlGroups } from './control-groups.js'

/** How much memory others want, as the system tells. */
export interface PressureReading {
  /** Bytes the system and the control groups can still give without swapping. */
  readonly freeBytes: number
  /** Share of the last ten seconds, in percent, in which something waited for memory (PSI); 0 where it is not told. */
  readonly stalledPercent: number
}

/** What a cache is between. */
export interface CacheBounds {
  readonly leastSlots: number
  readonly plannedSlots: number
  readonly slotBytes: number
}

// Somebody waits for memory a tenth of the time, or so little is left that the next burst would swap. The latter is less
// than the headroom any budget leaves, or a plan would give up what it was just given.
const STALLED_PERCENT = 10
const LOW_BYTES = 96e6
// What is taken at once: an eighth of what can be given, so that a short squeeze costs little and a long one is felt.
const SHRINK_SHARE = 1 / 8
// Growing waits for this many quiet readings and takes a sixteenth of the plan, so that it does not chase its own tail.
const QUIET_READINGS = 8
const QUIET_PERCENT = 1
const GROW_SHARE = 1 / 16

/** Decides how many slots a cache keeps, from one reading to the next; knows no files and no clock. */
export class CacheGovernor {
  readonly #bounds: CacheBounds
  #quiet = 0

  constructor(bounds: CacheBounds) {
    this.#bounds = bounds
  }

  /** Slots from now on, of `slots` now. */
  next(slots: number, { freeBytes, stalledPercent }: PressureReading): number {
    const { leastSlots, plannedSlots, slotBytes } = this.#bounds
    if (stalledPercent >= STALLED_PERCENT || freeBytes < LOW_BYTES) {
      this.#quiet = 0
      const missing = Math.ceil((LOW_BYTES - freeBytes) / slotBytes)
      const share = Math.ceil((slots - leastSlots) * SHRINK_SHARE)
      return Math.max(leastSlots, slots - Math.max(share, missing))
    }
    const more = Math.min(plannedSlots - slots, Math.ceil(plannedSlots * GROW_SHARE))
    const isQuiet = stalledPercent < QUIET_PERCENT && freeBytes > 2 * LOW_BYTES + more * slotBytes
    this.#quiet = isQuiet ? this.#quiet + 1 : 0
    if (more === 0 || this.#quiet < QUIET_READINGS) return slots
    this.#quiet = 0
    return slots + more
  }
}

/**
 * Gives what reads the pressure on this process; its control groups are looked up here, once, for it is called between
 * tokens. `root`: where /proc and /sys are, `/` but for tests.
 */
export const pressureReader = (root = '/'): (() => PressureReading) => {
  const groups = new ControlGroups(root)
  const file = groups.pressureFile()
  return () => {
    const some = existsSync(file) ? /^some avg10=([\d.]+)/m.exec(readFileSync(file, 'utf8')) : null
    const { usableBytes: freeBytes } = readMemory(root, 0, groups)
    return { freeBytes, stalledPercent: some === null ? 0 : Number(some[1]) }
  }
}
