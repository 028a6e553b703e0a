import type { ExpertCache, ExpertPlan, planUse } from '@k3/moe-cache'
import { ExpertFlight } from './expert-flight.js'
import type { ExpertSlots } from './expert-slots.js'
import type { ExpertBatch } from './interfaces.js'

/** What a batch asks for, and of whom. */
export interface BatchRequest {
  readonly cache: ExpertCache
  readonly slots: ExpertSlots
  readonly layer: number
  /** Distinct experts; how many does not matter. */
  readonly ids: Int32Array
  readonly use: ReturnType<typeof planUse>
  /** Throws when an expert that was just read is unusable. */
  readonly inspect: (layer: number, expert: number, base: number) => void
  /** Waits for an expert that was read ahead. */
  readonly awaitJoined: (layer: number, expert: number) => void
  /** Is told about each plan. */
  readonly count: (plan: ExpertPlan) => void
}

/** Experts that were asked for, planned together as far as the slots hold them. */
interface Wave {
  readonly flight: ExpertFlight
  /** Which of the ids they are. */
  readonly positions: Int32Array
}

/**
 * The experts of one layer. When the cache has no room for all of them at once they come in waves of half of it, what is
 * in memory first, and the next wave is read while the last one is multiplied with: each is read at most once.
 */
export class DiskBatch implements ExpertBatch {
  readonly #request: BatchRequest
  /** Positions in the ids, in the order in which they are planned; `#planned` of them have been. */
  readonly #order: Int32Array
  readonly #waveLength: number
  readonly #room: number
  #planned = 0
  readonly #waves: Wave[] = []

  constructor(request: BatchRequest) {
    const { cache, layer, ids, use } = request
    const { order, length, room } = cache.waves(layer, ids, use)
    this.#request = request
    this.#order = order
    this.#waveLength = length
    this.#room = room
    this.#planAhead()
  }

  arrive(positions: Int32Array, bases: Float64Array): number {
    for (let wave = this.#waves[0]; wave !== undefined; wave = this.#waves[0]) {
      const count = wave.flight.arrive(positions)
      for (let i = 0; i < count; i++) {
        const at = positions[i]!
        bases[i] = this.#accept(wave, at)
        positions[i] = wave.positions[at]!
      }
      if (count > 0) return count
      this.#request.cache.commit(wave.flight.plan)
      this.#waves.shift()
      this.#planAhead()
    }
    return 0
  }

  end(): void {
    for (const { flight } of this.#waves.splice(0)) this.#request.cache.commit(flight.plan)
  }

  abort(): void {
    for (const { flight } of this.#waves.splice(0)) {
      flight.settle()
      this.#request.cache.abort(flight.plan)
    }
  }

  /** Byte offset of an expert that is there. */
  #accept({ flight }: Wave, at: number): number {
    const { slots, inspect } = this.#request
    const { layer, experts, slots: slotOf } = flight.plan
    const base = slots.baseOf(layer, experts[at]!, slotOf[at]!)
    if (flight.hasRead(at)) inspect(layer, experts[at]!, base)
    return base
  }

  #planAhead(): void {
    try {
      while (this.#planned < this.#order.length) {
        const open = this.#waves.reduce((sum, { positions }) => sum + positions.length, 0)
        const positions = this.#order.subarray(this.#planned, this.#planned + this.#waveLength)
        if (open + positions.length > this.#room) return
        this.#waves.push({ flight: this.#start(positions), positions })
        this.#planned += positions.length
      }
    } catch (error) {
      this.abort()
      throw error
    }
  }

  #start(positions: Int32Array): ExpertFlight {
    const { cache, slots, layer, ids, use, awaitJoined } = this.#request
    const plan = cache.plan(
      layer,
      positions.map((i) => ids[i]!),
      use
    )
    this.#request.count(plan)
    try {
      const order = slots.missesInFileOrder(plan)
      const reads = order.length === 0 ? null : slots.read(plan, order, 0)
      return new ExpertFlight({
        plan,
        order,
        reads,
        awaitJoined: (at) => awaitJoined(layer, plan.experts[at]!)
      })
    } catch (error) {
      cache.abort(plan)
      throw error
    }
  }
}
