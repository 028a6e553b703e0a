/** A segment as the ring sees it. */
export interface RingSegment {
  /** null: the head, which only some passes need */
  readonly layer: number | null
  readonly isPinned: boolean
  /** Segments of one group lie beside each other in one buffer; of a pinned one it says nothing. */
  readonly group: number
}

/** A segment on its way into memory. */
export interface Loading {
  /** Blocks until all of it is there. @throws what kept it from arriving */
  wait(): void
  /** Whether `wait` would return or throw at once. */
  isOver(): boolean
  /** It is not needed any more: blocks until nothing writes into its place. */
  drop(): void
}

/** Starts to read segment `segment` into place `place`. */
export type Load = (segment: number, place: number) => Loading

const NONE = -1

interface Held {
  readonly place: number
  readonly loading: Loading
  isThere: boolean
  /** The last pass it was read for. */
  pass: number
}

/**
 * Which segment lies in which buffer, and what is read next. Segments are used in order, pass after pass; each is read as
 * soon as there is a buffer for it, so that the drive is idle only while every buffer holds what is still needed. A buffer
 * whose segments are over is taken when another needs it, the one that is needed again last first. Places 0 … `buffers` - 1
 * are those of the ring; a pinned segment s has place `buffers` + s for itself and is read once.
 */
export class TrunkRing {
  readonly #segments: readonly RingSegment[]
  readonly #buffers: number
  readonly #load: Load
  readonly #held: (Held | null)[]
  readonly #free: number[]
  readonly #layerSegments: number
  #pass = -1
  #passEnd: number
  #isPassOver = false
  #current = NONE
  /** What is read next: segment and pass. */
  #next = 0
  #nextPass = 0

  constructor(segments: readonly RingSegment[], buffers: number, load: Load) {
    this.#segments = segments
    this.#buffers = buffers
    this.#load = load
    this.#held = segments.map(() => null)
    this.#free = Array.from({ length: buffers }, (_, i) => i)
    this.#layerSegments = segments.filter(({ layer }) => layer !== null).length
    this.#passEnd = segments.length
  }

  /** A pass over all layers begins, with the head or without. */
  begin(withHead: boolean): void {
    this.#pass++
    this.#passEnd = withHead ? this.#segments.length : this.#layerSegments
    this.#isPassOver = false
    this.#current = NONE
    if (this.#nextPass < this.#pass) this.#restart(0)
    this.#readAhead()
  }

  /** Where a segment lies, once it is there. It stays until another one is used. @throws as `Loading.wait` */
  use(segment: number): number {
    const known = this.#held[segment]!
    if (segment === this.#current && known?.isThere === true) return known.place
    this.#current = segment
    if (known === null) this.#restart(segment)
    this.#readAhead()
    return this.#arrived(segment)
  }

  /** Whether a segment can be used without waiting. */
  has(segment: number): boolean {
    const held = this.#held[segment]!
    return held !== null && (held.isThere || held.loading.isOver())
  }

  /** The pass is over: nothing is in use any more. */
  end(): void {
    this.#isPassOver = true
    this.#current = NONE
    this.#readAhead()
  }

  /** Ends what is on its way. */
  close(): void {
    this.#held.forEach((held, segment) => {
      if (held !== null) this.#drop(segment)
    })
  }

  #arrived(segment: number): number {
    const held = this.#held[segment]!
    if (held.isThere) return held.place
    try {
      held.loading.wait()
    } catch (error) {
      this.#current = NONE
      this.#drop(segment)
      throw error
    }
    held.isThere = true
    return held.place
  }

  /** Goes on from a segment that was not expected now, because an earlier pass ended in the middle: all is over. */
  #restart(segment: number): void {
    for (const held of this.#held) if (held !== null) held.pass = this.#pass - 1
    this.#next = segment
    this.#nextPass = this.#pass
  }

  #drop(segment: number): void {
    const { place, loading, isThere } = this.#held[segment]!
    this.#held[segment] = null
    if (!isThere) loading.drop()
    this.#vacate(place)
  }

  /** Reads on in the order of use until no buffer is free, at most to the end of the next pass's layers. */
  #readAhead(): void {
    for (;;) {
      if (this.#nextPass <= this.#pass && this.#next >= this.#passEnd) {
        this.#next = 0
        this.#nextPass = this.#pass + 1
      }
      if (this.#nextPass > this.#pass && this.#next >= this.#layerSegments) return
      const held = this.#held[this.#next]!
      if (held !== null) held.pass = this.#nextPass
      else if (!this.#start(this.#next)) return
      this.#next++
    }
  }

  #start(segment: number): boolean {
    const place = this.#placeFor(segment)
    if (place === NONE) return false
    try {
      const loading = this.#load(segment, place)
      this.#held[segment] = { place, loading, isThere: false, pass: this.#nextPass }
    } catch (error) {
      this.#vacate(place)
      throw error
    }
    return true
  }

  /** The buffer its group lies in, or a free one; NONE when all are still needed. */
  #placeFor(segment: number): number {
    const { isPinned, group } = this.#segments[segment]!
    if (isPinned) return this.#buffers + segment
    const beside = this.#held.findIndex((held, other) => held !== null && this.#isInGroup(other, group))
    if (beside !== NONE) return this.#held[beside]!.place
    if (this.#free.length === 0) this.#reclaim()
    const place = this.#free.shift()
    return place === undefined ? NONE : place
  }

  #isInGroup(segment: number, group: number): boolean {
    const other = this.#segments[segment]!
    return !other.isPinned && other.group === group
  }

  /** A buffer is free when it holds nothing any more. */
  #vacate(place: number): void {
    if (place < this.#buffers && this.#heldIn(place).length === 0) this.#free.push(place)
  }

  #heldIn(place: number): number[] {
    return [...this.#held.keys()].filter((segment) => this.#held[segment]?.place === place)
  }

  /** Empties the buffer whose segments are over and will be needed last, if there is one. */
  #reclaim(): void {
    const count = this.#segments.length
    let last: readonly number[] = []
    let distance = NONE
    for (let place = 0; place < this.#buffers; place++) {
      const segments = this.#heldIn(place)
      if (!segments.every((segment) => this.#isOver(segment))) continue
      const away = Math.min(...segments.map((segment) => (segment - this.#next + count) % count))
      if (away <= distance) continue
      last = segments
      distance = away
    }
    for (const segment of last) this.#drop(segment)
  }

  #isOver(segment: number): boolean {
    const held = this.#held[segment]!
    if (held === null || this.#segments[segment]!.isPinned || segment === this.#current) return false
    if (held.pass !== this.#pass) return held.pass < this.#pass
    return this.#isPassOver || segment < this.#current
  }
}
