/** The cache as one would write it first: a Map, a list of plans, and a full scan for each victim. */

export type PolicyName = 'lru' | 'lfu' | 'layer-lru'

interface Entry {
  readonly layer: number
  readonly expert: number
  pins: number
  filling: boolean
  releasedAt: number
}

export interface NaivePlan {
  readonly layer: number
  readonly hits: Entry[]
  readonly joined: Entry[]
  readonly misses: Entry[]
  /** Hits, joined and misses in the caller's order. */
  readonly entries: Entry[]
}

export class NaiveCache {
  slots: number
  hits = 0
  misses = 0
  evictions = 0
  readonly open: NaivePlan[] = []
  readonly #topK: number
  readonly #policy: PolicyName
  readonly #entries = new Map<string, Entry>()
  readonly #lost = new Set<Entry>()
  readonly #uses = new Map<string, number>()
  #clock = 0

  constructor(slots: number, topK: number, policy: PolicyName) {
    this.slots = slots
    this.#topK = topK
    this.#policy = policy
  }

  get pinned(): number {
    return [...this.#entries.values(), ...this.#lost].filter((entry) => entry.pins > 0).length
  }

  get resident(): string[] {
    return [...this.#entries].filter(([, entry]) => !entry.filling).map(([key]) => key)
  }

  plan(layer: number, ids: readonly number[]): NaivePlan | string {
    if (ids.length > this.slots) return 'ERR_MOE_CACHE_UNION_TOO_LARGE'
    const found = ids.map((expert) => this.#entries.get(`${layer}:${expert}`))
    const newPins = found.filter((entry) => entry?.pins === 0).length
    const missing = found.filter((entry) => entry === undefined).length
    if (missing > this.slots - this.pinned - newPins) return 'ERR_MOE_CACHE_ALL_PINNED'

    const plan: NaivePlan = { layer, hits: [], joined: [], misses: [], entries: [] }
    for (const entry of found) if (entry !== undefined) this.#pin(entry)
    for (const [i, expert] of ids.entries()) {
      const entry = found[i] ?? this.#claim(layer, expert)
      if (found[i] === undefined) plan.misses.push(entry)
      else (entry.filling ? plan.joined : plan.hits).push(entry)
      plan.entries.push(entry)
    }
    this.hits += ids.length - plan.misses.length
    this.misses += plan.misses.length
    this.open.push(plan)
    return plan
  }

  commit(plan: NaivePlan): string | undefined {
    for (const entry of plan.joined) {
      if (this.#lost.has(entry)) return 'ERR_MOE_CACHE_PLAN_LOST'
      if (entry.filling) return 'ERR_MOE_CACHE_PLAN_EARLY'
    }
    for (const entry of plan.misses) entry.filling = false
    for (const entry of plan.entries) this.#unpin(entry)
    this.open.splice(this.open.indexOf(plan), 1)
    return undefined
  }

  abort(plan: NaivePlan): void {
    for (const entry of [...plan.hits, ...plan.joined]) this.#unpin(entry)
    for (const entry of plan.misses) {
      this.#entries.delete(`${entry.layer}:${entry.expert}`)
      this.#lost.add(entry)
      this.#unpin(entry)
    }
    this.open.splice(this.open.indexOf(plan), 1)
  }

  resize(slots: number): string | undefined {
    if (slots < this.#topK) return 'ERR_MOE_CACHE_TOO_FEW_SLOTS'
    if (slots < this.pinned) return 'ERR_MOE_CACHE_IN_USE'
    this.slots = slots
    while (this.#entries.size + this.#lost.size > slots) this.#evict(-1)
    return undefined
  }

  clear(): string | undefined {
    if (this.open.length > 0) return 'ERR_MOE_CACHE_IN_USE'
    this.#entries.clear()
    this.hits = this.misses = this.evictions = 0
    return undefined
  }

  #claim(layer: number, expert: number): Entry {
    if (this.#entries.size + this.#lost.size >= this.slots) this.#evict(layer)
    const entry = { layer, expert, pins: 0, filling: true, releasedAt: 0 }
    this.#entries.set(`${layer}:${expert}`, entry)
    this.#pin(entry)
    return entry
  }

  #pin(entry: Entry): void {
    const key = `${entry.layer}:${entry.expert}`
    entry.pins++
    this.#uses.set(key, (this.#uses.get(key) ?? 0) + 1)
  }

  #unpin(entry: Entry): void {
    if (--entry.pins > 0) return
    entry.releasedAt = this.#clock++
    this.#lost.delete(entry)
  }

  #evict(layer: number): void {
    const released = [...this.#entries].filter(([, entry]) => entry.pins === 0)
    const donor = this.#donor(
      released.map(([, entry]) => entry.layer),
      layer
    )
    const cost = ([key, entry]: [string, Entry]): number[] => {
      if (this.#policy === 'lfu') return [this.#uses.get(key)!, entry.releasedAt]
      if (this.#policy === 'lru') return [entry.releasedAt]
      return [entry.layer === donor ? 0 : 1, entry.releasedAt]
    }
    released.sort((a, b) => {
      const [left, right] = [cost(a), cost(b)]
      return left[0]! - right[0]! || (left[1] ?? 0) - (right[1] ?? 0)
    })
    this.#entries.delete(released[0]![0])
    this.evictions++
  }

  /** The layer that holds most, the asking one or else the lowest on a tie, of those that have a released slot. */
  #donor(layers: readonly number[], asking: number): number {
    const held = (layer: number): number =>
      [...this.#entries.values(), ...this.#lost].filter((entry) => entry.layer === layer).length
    const order = (layer: number): number => (layer === asking ? -1 : layer)
    return [...layers].sort((a, b) => held(b) - held(a) || order(a) - order(b))[0]!
  }
}
