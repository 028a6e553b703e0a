// Chosen so that drafts are tried where most of them hold: a draft that fails costs its experts twice.
const LENGTHS: readonly [acceptance: number, length: number][] = [
  [0.75, 8],
  [0.5, 4],
  [0.25, 2]
]
const FIRST_ACCEPTANCE = 0.5
const MEMORY_PASSES = 4
const PAUSE_PASSES = 32

/** How many tokens to draft for a pass. */
export interface DraftLength {
  /** Asked once before each pass. */
  next(): number
  /** What became of the drafts of a pass. */
  observe(drafted: number, accepted: number): void
}

/** Always the same number. */
export const fixedLength = (length: number): DraftLength => ({
  next: () => length,
  observe: () => undefined
})

/**
 * Drafts 8, 4 or 2 tokens while at least 75, 50 or 25 % of the latest ones were accepted (a mean that forgets a quarter
 * with each pass, 50 % at the start). Below that it drafts nothing for 32 passes, then tries 2 again. Only acceptance
 * decides, not time, so that a run can be repeated.
 */
export const measuredLength = (): DraftLength => {
  let acceptance = FIRST_ACCEPTANCE
  let pause = 0
  return {
    next: () => {
      if (pause > 0 && --pause > 0) return 0
      const fitting = LENGTHS.find(([least]) => acceptance >= least)
      return fitting === undefined ? 2 : fitting[1]
    },
    observe: (drafted, accepted) => {
      acceptance += (accepted / drafted - acceptance) / MEMORY_PASSES
      if (acceptance < LENGTHS.at(-1)![0]) pause = PAUSE_PASSES + 1
    }
  }
}
