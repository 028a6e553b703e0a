/** Quarters of the router's order, and a fifth class for uses without a rank. */
const RANKS = 5
const UNRANKED = RANKS - 1
/** Used in the latest visit of its layer, in the one before, or earlier. */
const AGES = 3
const EARLIER = AGES - 1
/** Worth of a use after each visit that follows it; a level is one such factor. */
const DECAY = 0.8
const LEVELS = 12
/** The level of a single use, and the worth of one use a visit (1 / (1 − DECAY)) is level 0. */
const FIRST_LEVEL = 7
const RECENCIES = AGES * LEVELS
/** Prior observations behind each estimate. */
const WEIGHT = 16
const MOST_ODDS = 0.9

/** How many classes of experts there are. */
export const CLASSES = RECENCIES * RANKS

const worthOf = (level: number): number => DECAY ** (level - FIRST_LEVEL)

const levelAfterUse = Int32Array.from({ length: LEVELS }, (_, level) => {
  if (level === LEVELS - 1) return FIRST_LEVEL
  return Math.max(0, Math.round(FIRST_LEVEL + Math.log(worthOf(level) + 1) / Math.log(DECAY)))
})

const classOf = (age: number, level: number, rank: number): number => (age * LEVELS + level) * RANKS + rank
const ageOf = (reuseClass: number): number => Math.floor(reuseClass / (LEVELS * RANKS))
const levelOf = (reuseClass: number): number => Math.floor(reuseClass / RANKS) % LEVELS
const recencyOf = (reuseClass: number): number => Math.floor(reuseClass / RANKS)

/** The class an expert of this class has `visits` visits of its layer later, unless it is used. */
export const classAfter = (reuseClass: number, visits: number): number =>
  classOf(
    Math.min(EARLIER, ageOf(reuseClass) + visits),
    Math.min(LEVELS - 1, levelOf(reuseClass) + visits),
    reuseClass % RANKS
  )

/** The class of an expert that is used now. before: its class until now, -1 for a first use; rank: as in `EvictionPolicy.touch`. */
export const classAfterUse = (before: number, rank: number, topK: number): number => {
  const quarter = rank < 0 ? UNRANKED : Math.min(UNRANKED, Math.floor(((RANKS - 1) * rank) / topK))
  if (before === -1) return classOf(0, FIRST_LEVEL, quarter)
  return classOf(0, ageOf(before) === 0 ? levelOf(before) : levelAfterUse[levelOf(before)]!, quarter)
}

/**
 * The chance that an expert is used when its layer comes round, learnt while it runs. A class is what is known of an
 * expert: whether its latest use is one visit ago or more, its uses so far (each counts 0.8 as much with every visit),
 * and its router rank at the latest use. The estimate of a class leans on that of all its ranks together, which leans
 * on the share of visits its uses so far amount to, halved for those that were passed over already.
 */
export class ReuseOdds {
  readonly #trials = new Float64Array(CLASSES)
  readonly #uses = new Float64Array(CLASSES)
  readonly #recencyTrials = new Float64Array(RECENCIES)
  readonly #recencyUses = new Float64Array(RECENCIES)

  /** chances, uses: [CLASSES] how many experts of each class could have been used in a visit, and were. */
  observe(chances: Int32Array, uses: Int32Array): void {
    for (let reuseClass = 0; reuseClass < CLASSES; reuseClass++) {
      const recency = recencyOf(reuseClass)
      this.#trials[reuseClass]! += chances[reuseClass]!
      this.#uses[reuseClass]! += uses[reuseClass]!
      this.#recencyTrials[recency]! += chances[reuseClass]!
      this.#recencyUses[recency]! += uses[reuseClass]!
    }
  }

  /** The chance, 0 to 1 without its ends, that an expert of the class is used in the visit at hand. */
  of(reuseClass: number): number {
    const recency = recencyOf(reuseClass)
    const share = Math.min(MOST_ODDS, (1 - DECAY) * worthOf(levelOf(reuseClass)))
    const prior = ageOf(reuseClass) === EARLIER ? share / 2 : share
    const odds = (this.#recencyUses[recency]! + WEIGHT * prior) / (this.#recencyTrials[recency]! + WEIGHT)
    return (this.#uses[reuseClass]! + WEIGHT * odds) / (this.#trials[reuseClass]! + WEIGHT)
  }
}
