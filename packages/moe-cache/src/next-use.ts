import type { EvictionPolicy } from './eviction-policy.js'
import { ExpertTable } from './expert-table.js'
import { grown } from './growable.js'
import { IndexedHeap } from './indexed-heap.js'
import { CLASSES, classAfter, classAfterUse, ReuseOdds } from './reuse-odds.js'
import { SlotQueues } from './slot-queues.js'

const NEVER = -1
// Odds move between the visits of a layer, so the queue in front is weighed again before it gives a slot.
const MOST_WEIGHED = 8

/**
 * Evicts the expert whose next use is expected last. A decoder visits its layers in a circle, so an expert has its next
 * chance when its layer comes round, and takes it with a chance p that is learnt online (`ReuseOdds`): its next use is
 * expected `layers / p` visits after the latest visit of its layer. That makes room for layers that are due soon by
 * giving up the unlikely experts of the layer that was just left, which is what a circle needs.
 *
 * Slots of a layer and class stand in one queue; a visit moves each queue of its layer on by one. So a touch, a release
 * and a victim cost O(log(layers × classes)) at most, and a visit that for each class, whatever the number of slots.
 * A new visit begins when another layer is touched: with a single layer nothing is learnt and the longest unused goes.
 * What is only expected begins none, and is put down to the latest visit of its layer if it was never used.
 */
class NextUse implements EvictionPolicy {
  readonly #topK: number
  readonly #odds = new ReuseOdds()
  /** A queue for each (layer, class). */
  readonly #queues = new SlotQueues()
  /** Queues that hold a slot, latest expected use first. */
  readonly #order = new IndexedHeap()
  /** (layer, expert) → class at its latest use, and number of that visit among the visits of its layer */
  readonly #classAtUse = new ExpertTable(NEVER)
  readonly #visitOfUse = new ExpertTable(NEVER)
  /** [layers, classes] experts that were ever used, resident or not */
  #population = new Int32Array(0)
  /** [layers] visits so far, and the time of the latest one; time counts the visits of all layers. */
  #visits = new Int32Array(0)
  #visitedAt = new Int32Array(0)
  #time = 0
  /** Layers seen, and how many there were when all queues were placed: the first circle shows how long a circle is. */
  #layers = 0
  #layersPlaced = 0
  #layer = NEVER
  /** [classes] experts that have their chance in this visit, and those that took it so far */
  readonly #chances = new Int32Array(CLASSES)
  readonly #uses = new Int32Array(CLASSES)
  /** [slots] what a slot holds */
  #layerOf = new Int32Array(0)
  #expertOf = new Int32Array(0)

  constructor(topK: number) {
    this.#topK = topK
  }

  touch(slot: number, layer: number, expert: number, rank: number): void {
    if (rank < 0) this.#reserve(layer)
    else if (layer !== this.#layer) this.#beginVisit(layer)
    this.#layerOf = grown(this.#layerOf, slot + 1, NEVER)
    this.#expertOf = grown(this.#expertOf, slot + 1, NEVER)
    this.#layerOf[slot] = layer
    this.#expertOf[slot] = expert
    const before = this.#classNow(layer, expert)
    if (before !== NEVER) this.#take(slot, layer * CLASSES + before)
    if (rank >= 0 || before === NEVER) this.#use(layer, expert, before, rank)
  }

  release(slot: number, resident: boolean): void {
    if (!resident) return
    const layer = this.#layerOf[slot]!
    const reuseClass = this.#classNow(layer, this.#expertOf[slot]!)
    this.#queues.append(layer * CLASSES + reuseClass, slot)
    this.#place(layer, reuseClass)
  }

  victim(): number {
    let queue = this.#order.first()
    for (let weighed = 0; weighed < MOST_WEIGHED; weighed++) {
      this.#place(Math.floor(queue / CLASSES), queue % CLASSES)
      if (this.#order.first() === queue) break
      queue = this.#order.first()
    }
    const slot = this.#queues.first(queue)
    this.#take(slot, queue)
    return slot
  }

  /** Takes the slot out of the queue, and the queue out of the order with its last one. */
  #take(slot: number, queue: number): void {
    this.#queues.remove(slot)
    if (this.#queues.first(queue) === NEVER) this.#order.remove(queue)
  }

  #use(layer: number, expert: number, before: number, rank: number): void {
    if (before !== NEVER) {
      if (this.#visitOfUse.get(layer, expert) !== this.#visits[layer]) this.#uses[before]! += 1
      this.#population[layer * CLASSES + before]! -= 1
    }
    const now = classAfterUse(before, rank, this.#topK)
    this.#population[layer * CLASSES + now]! += 1
    this.#classAtUse.set(layer, expert, now)
    this.#visitOfUse.set(layer, expert, this.#visits[layer]!)
  }

  #reserve(layer: number): void {
    this.#visits = grown(this.#visits, layer + 1, 0)
    this.#visitedAt = grown(this.#visitedAt, layer + 1, 0)
    this.#population = grown(this.#population, (layer + 1) * CLASSES, 0)
  }

  #classNow(layer: number, expert: number): number {
    const reuseClass = this.#classAtUse.get(layer, expert)
    if (reuseClass === NEVER) return NEVER
    return classAfter(reuseClass, this.#visits[layer]! - this.#visitOfUse.get(layer, expert))
  }

  /** Ends the visit there was: every expert of the layer that was used before now has its chance. */
  #beginVisit(layer: number): void {
    this.#odds.observe(this.#chances, this.#uses)
    this.#reserve(layer)
    if (this.#visits[layer]! === 0) this.#layers++
    else if (this.#layersPlaced !== this.#layers) this.#placeAll()
    this.#visits[layer]! += 1
    this.#visitedAt[layer] = this.#time++
    this.#layer = layer
    // older classes first: each moves to one that was moved on already
    for (let reuseClass = CLASSES - 1; reuseClass >= 0; reuseClass--) this.#moveOn(layer, reuseClass)
    for (let reuseClass = 0; reuseClass < CLASSES; reuseClass++) {
      this.#chances[reuseClass] = this.#population[layer * CLASSES + reuseClass]!
      this.#uses[reuseClass] = 0
      this.#place(layer, reuseClass)
    }
  }

  #placeAll(): void {
    this.#layersPlaced = this.#layers
    for (let queue = 0; queue < this.#population.length; queue++) {
      if (this.#queues.first(queue) !== NEVER) this.#place(Math.floor(queue / CLASSES), queue % CLASSES)
    }
  }

  #moveOn(layer: number, reuseClass: number): void {
    const next = classAfter(reuseClass, 1)
    if (next === reuseClass) return
    const from = layer * CLASSES + reuseClass
    this.#queues.move(from, layer * CLASSES + next)
    this.#population[layer * CLASSES + next]! += this.#population[from]!
    this.#population[from] = 0
  }

  /** Puts the queue where it belongs by what is known now. */
  #place(layer: number, reuseClass: number): void {
    const queue = layer * CLASSES + reuseClass
    if (this.#queues.first(queue) === NEVER) {
      this.#order.remove(queue)
      return
    }
    const odds = this.#odds.of(classAfter(reuseClass, 1))
    this.#order.set(queue, -(this.#visitedAt[layer]! + this.#layers / odds), queue)
  }
}

/** A fresh policy for a router that picks topK experts. */
export const nextUse = (topK: number): EvictionPolicy => new NextUse(topK)
