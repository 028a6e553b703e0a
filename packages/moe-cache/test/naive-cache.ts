import type { PolicyName } from '../src/index.js'
import type { PlanUse } from '../src/plan-use.js'
import { type Held, type NaivePolicy, naivePolicy } from './naive-policies.js'

interface Entry extends Held {
  filling: boolean
  /** Only scans have used it: the policy knows nothing of it. */
  passing: boolean
}

export interface NaivePlan {
  readonly layer: number
  readonly hits: Entry[]
  readonly joined: Entry[]
  readonly misses: Entry[]
  /** Hits, joined and misses in the caller's order. */
  readonly entries: Entry[]
}

/** The cache as one would write it first: a Map, a list of plans, and a full scan for each victim. */
export class NaiveCache {
  slots: number
  hits = 0
  misses = 0
  evictions = 0
  readonly open: NaivePlan[] = []
  readonly #topK: number
  readonly #policy: NaivePolicy
  readonly #entries = new Map<string, Entry>()
  readonly #lost = new Set<Entry>()
  #clock = 0

  constructor(slots: number, topK: number, policy: PolicyName) {
    this.slots = slots
    this.#topK = topK
    this.#policy = naivePolicy(policy, topK)
  }

  get pinned(): number {
    return [...this.#entries.values(), ...this.#lost].filter((entry) => entry.pins > 0).length
  }

  get resident(): string[] {
    return [...this.#entries].filter(([, entry]) => !entry.filling).map(([key]) => key)
  }

  plan(layer: number, ids: readonly number[], use: PlanUse): NaivePlan | string {
    if (ids.length > this.slots) return 'ERR_MOE_CACHE_UNION_TOO_LARGE'
    const found = ids.map((expert) => this.#entries.get(`${layer}:${expert}`))
    const newPins = found.filter((entry) => entry?.pins === 0).length
    const missing = found.filter((entry) => entry === undefined).length
    if (missing > this.slots - this.pinned - newPins) return 'ERR_MOE_CACHE_ALL_PINNED'

    const plan: NaivePlan = { layer, hits: [], joined: [], misses: [], entries: [] }
    const isScan = use === 'prompt'
    const rank = (i: number): number => ({ token: i, tokens: this.#topK, prompt: this.#topK, ahead: -1 })[use]
    for (const [i, entry] of found.entries()) if (entry !== undefined) this.#pin(entry, rank(i), isScan)
    for (const [i, expert] of ids.entries()) {
      const entry = found[i] ?? this.#claim(layer, expert, rank(i), isScan)
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

  get scanSlots(): number {
    const passing = [...this.#entries.values()].filter((entry) => entry.passing && entry.pins === 0)
    return Math.max(this.#scanShare, this.slots - this.#entries.size - this.#lost.size + passing.length)
  }

  resize(slots: number): string | undefined {
    if (slots < this.#topK) return 'ERR_MOE_CACHE_TOO_FEW_SLOTS'
    if (slots < this.pinned) return 'ERR_MOE_CACHE_IN_USE'
    this.slots = slots
    while (this.#entries.size + this.#lost.size > slots) this.#evict(-1, false)
    return undefined
  }

  clear(): string | undefined {
    if (this.open.length > 0) return 'ERR_MOE_CACHE_IN_USE'
    while (this.#entries.size > 0) this.#evict(-1, false)
    this.hits = this.misses = this.evictions = 0
    return undefined
  }

  get #scanShare(): number {
    return Math.max(this.#topK, Math.floor(this.slots / 8))
  }

  #claim(layer: number, expert: number, rank: number, isScan: boolean): Entry {
    if (this.#entries.size + this.#lost.size >= this.slots) this.#evict(layer, isScan)
    const entry = { layer, expert, pins: 1, filling: true, releasedAt: 0, passing: isScan }
    this.#entries.set(`${layer}:${expert}`, entry)
    if (!isScan) this.#policy.use(entry, true, rank)
    return entry
  }

  #pin(entry: Entry, rank: number, isScan: boolean): void {
    entry.pins++
    if (entry.passing && isScan) return
    this.#policy.use(entry, entry.passing, rank)
    entry.passing = false
  }

  #unpin(entry: Entry): void {
    if (--entry.pins > 0) return
    entry.releasedAt = this.#clock++
    const isLost = this.#lost.delete(entry)
    if (entry.passing) return
    if (isLost) this.#policy.gone(entry)
    else this.#policy.release(entry)
  }

  /** What is passing goes first, the latest before the others; a scan takes more only below its share. */
  #evict(layer: number, isScan: boolean): void {
    const all = [...this.#entries.values()]
    const passing = all.filter((entry) => entry.passing && entry.pins === 0)
    const held = [...all, ...this.#lost].filter((entry) => entry.passing).length
    const canTake = all.some((entry) => !entry.passing && entry.pins === 0)
    const takes = passing.length === 0 || (isScan && held < this.#scanShare && canTake)
    const entry = takes
      ? this.#policy.victim(layer)
      : passing.reduce((latest, each) => (each.releasedAt > latest.releasedAt ? each : latest))
    if (takes) this.#policy.gone(entry)
    this.#entries.delete(`${entry.layer}:${entry.expert}`)
    this.evictions++
  }
}
