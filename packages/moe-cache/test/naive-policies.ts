import type { PolicyName } from '../src/index.js'
import { CLASSES, classAfter, classAfterUse, ReuseOdds } from '../src/reuse-odds.js'

/** What a policy may know of a slot: a full scan over these finds the victim. */
export interface Held {
  readonly layer: number
  readonly expert: number
  pins: number
  releasedAt: number
}

/** A policy as one would write it first: it is told every use and looks at every released entry for each victim. */
export interface NaivePolicy {
  use(entry: Held, isNew: boolean, rank: number): void
  release(entry: Held): void
  gone(entry: Held): void
  victim(asking: number): Held
}

const keyOf = ({ layer, expert }: Held): string => `${layer}:${expert}`

/** The least by a list of numbers, compared one after the other. */
const least = <T>(items: readonly T[], cost: (item: T) => readonly number[]): T =>
  items.reduce((best, item) => {
    const [left, right] = [cost(item), cost(best)]
    const i = left.findIndex((value, j) => value !== right[j])
    return i !== -1 && left[i]! < right[i]! ? item : best
  })

abstract class Scanned implements NaivePolicy {
  readonly held = new Set<Held>()

  use(entry: Held, _isNew: boolean, _rank: number): void {
    this.held.add(entry)
  }

  release(_entry: Held): void {
    // the cache notes when
  }

  gone(entry: Held): void {
    this.held.delete(entry)
  }

  victim(asking: number): Held {
    return least(
      [...this.held].filter(({ pins }) => pins === 0),
      (entry) => this.cost(entry, asking)
    )
  }

  abstract cost(entry: Held, asking: number): readonly number[]
}

class Lru extends Scanned {
  cost({ releasedAt }: Held): number[] {
    return [releasedAt]
  }
}

class Lfu extends Scanned {
  readonly #uses = new Map<string, number>()

  override use(entry: Held): void {
    this.held.add(entry)
    this.#uses.set(keyOf(entry), (this.#uses.get(keyOf(entry)) ?? 0) + 1)
  }

  cost(entry: Held): number[] {
    return [this.#uses.get(keyOf(entry))!, entry.releasedAt]
  }
}

class LayerLru extends Scanned {
  cost({ layer, releasedAt }: Held, asking: number): number[] {
    const share = [...this.held].filter((entry) => entry.layer === layer).length
    return [-share, layer === asking ? -1 : layer, releasedAt]
  }
}

/** Two arrays and a list of ghosts, as in the paper. */
class S3Fifo implements NaivePolicy {
  #small: Held[] = []
  #main: Held[] = []
  #ghosts: string[] = []
  readonly #uses = new Map<Held, number>()
  readonly #queueOf = new Map<Held, 'small' | 'main'>()

  use(entry: Held, isNew: boolean): void {
    if (!isNew) {
      this.#uses.set(entry, Math.min(3, this.#uses.get(entry)! + 1))
      return
    }
    const isGhost = this.#ghosts.slice(-this.#ghostLimit || this.#ghosts.length).includes(keyOf(entry))
    this.#ghosts = this.#ghosts.map((key) => (key === keyOf(entry) ? '' : key))
    this.#uses.set(entry, 0)
    this.#queueOf.set(entry, isGhost && this.#ghostLimit > 0 ? 'main' : 'small')
  }

  release(entry: Held): void {
    const queue = this.#queueOf.get(entry) === 'small' ? this.#small : this.#main
    if (!queue.includes(entry)) queue.push(entry)
  }

  gone(entry: Held): void {
    this.#small = this.#small.filter((each) => each !== entry)
    this.#main = this.#main.filter((each) => each !== entry)
    this.#queueOf.delete(entry)
  }

  victim(): Held {
    for (;;) {
      const held = [...this.#queueOf.values()]
      const isFull = held.filter((queue) => queue === 'small').length >= 0.1 * held.length
      const isSmall = isFull ? this.#small.length > 0 : this.#main.length === 0
      const entry = (isSmall ? this.#small : this.#main).shift()!
      const uses = this.#uses.get(entry)!
      if (entry.pins > 0) continue
      if (isSmall && uses >= 2) {
        this.#queueOf.set(entry, 'main')
        this.#uses.set(entry, 0)
        this.#main.push(entry)
      } else if (!isSmall && uses > 0) {
        this.#uses.set(entry, uses - 1)
        this.#main.push(entry)
      } else {
        if (isSmall) this.#ghosts.push(keyOf(entry))
        return entry
      }
    }
  }

  /** Ghosts count by their serial: an entry that came back leaves a gap. */
  get #ghostLimit(): number {
    return Math.ceil(0.9 * this.#queueOf.size)
  }
}

interface Known {
  atUse: number
  visit: number
}

/** The whole table of experts is walked at every visit, and every released slot is weighed. */
class NextUse implements NaivePolicy {
  readonly #odds = new ReuseOdds()
  readonly #known = new Map<string, Known>()
  readonly #visits = new Map<number, number>()
  readonly #visitedAt = new Map<number, number>()
  readonly #weights = new Map<string, number>()
  readonly #chances = new Int32Array(CLASSES)
  readonly #uses = new Int32Array(CLASSES)
  /** In the order in which equals are given up. */
  #released: Held[] = []
  #time = 0
  #placed = 0
  #layer = -1
  readonly #topK: number

  constructor(topK: number) {
    this.#topK = topK
  }

  use(entry: Held, _isNew: boolean, rank: number): void {
    const { layer } = entry
    if (rank >= 0 && layer !== this.#layer) this.#begin(layer)
    this.gone(entry)
    const before = this.#classOf(entry)
    const visit = this.#visits.get(layer) ?? 0
    if (rank < 0 && before !== -1) return
    if (before !== -1 && this.#known.get(keyOf(entry))!.visit !== visit) this.#uses[before]! += 1
    this.#known.set(keyOf(entry), { atUse: classAfterUse(before, rank, this.#topK), visit })
  }

  release(entry: Held): void {
    this.#released.push(entry)
    this.#weigh(entry.layer, this.#classOf(entry))
  }

  gone(entry: Held): void {
    this.#released = this.#released.filter((each) => each !== entry)
  }

  victim(): Held {
    for (let weighed = 0; ; weighed++) {
      const first = this.#front()
      if (weighed >= 8) return first
      this.#weigh(first.layer, this.#classOf(first))
      if (this.#classKey(this.#front()) === this.#classKey(first)) return first
    }
  }

  #front(): Held {
    return least(this.#released, (entry) => [
      -this.#weights.get(this.#classKey(entry))!,
      entry.layer,
      this.#classOf(entry)
    ])
  }

  #classKey(entry: Held): string {
    return `${entry.layer}/${this.#classOf(entry)}`
  }

  #classOf(entry: Held): number {
    const known = this.#known.get(keyOf(entry))
    return known === undefined
      ? -1
      : classAfter(known.atUse, (this.#visits.get(entry.layer) ?? 0) - known.visit)
  }

  #begin(layer: number): void {
    this.#odds.observe(this.#chances, this.#uses)
    if (this.#visits.has(layer) && this.#placed !== this.#visits.size) {
      this.#placed = this.#visits.size
      for (const entry of this.#released) this.#weigh(entry.layer, this.#classOf(entry))
    }
    this.#released.sort((a, b) =>
      a.layer === b.layer ? this.#classOf(b) - this.#classOf(a) : a.layer - b.layer
    )
    this.#visits.set(layer, (this.#visits.get(layer) ?? 0) + 1)
    this.#visitedAt.set(layer, this.#time++)
    this.#layer = layer
    this.#chances.fill(0)
    this.#uses.fill(0)
    for (const key of this.#known.keys()) {
      const [of, expert] = key.split(':').map(Number) as [number, number]
      if (of === layer) this.#chances[this.#classOf({ layer, expert, pins: 0, releasedAt: 0 })]! += 1
    }
    for (const entry of this.#released) {
      if (entry.layer === layer) this.#weigh(layer, this.#classOf(entry))
    }
  }

  #weigh(layer: number, reuseClass: number): void {
    const odds = this.#odds.of(classAfter(reuseClass, 1))
    this.#weights.set(`${layer}/${reuseClass}`, (this.#visitedAt.get(layer) ?? 0) + this.#visits.size / odds)
  }
}

const NAIVE = { lru: Lru, lfu: Lfu, 'layer-lru': LayerLru, 's3-fifo': S3Fifo, 'next-use': NextUse }

/** The naive twin of a built-in policy. */
export const naivePolicy = (name: PolicyName, topK: number): NaivePolicy => new NAIVE[name](topK)
