/** A segment as the ring sees it. */
export interface RingSegment {
  /** null: the head, which only some passes need */
  readonly layer: number | null
  readonly isPinned: boolean
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

interface Held {
  readonly place: number
  readonly loading: Loading
  isThere: boolean
  /** The last pass it was read for. */
  pass: number
}

/**
 * Which segment lies in which buffer, and what is read next. Segments are used in order, pass after pass; each is read as
 * soon as a buffer is free, so that the drive is idle only while every buffer holds what is still needed. Places 0 …
 * `buffers` - 1 are those of the ring; a pinned segment s has place `buffers` + s for itself and is read once.
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
  #current = -1
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
    this.#current = -1
    if (this.#nextPass < this.#pass) this.#restart(0)
    // before anything is released, so that a segment this pass can use again is kept
    this.#readAhead()
    this.#release((held) => held.pass < this.#pass)
    this.#readAhead()
  }

  /** Where a segment lies, once it is there. It stays until another one is used. @throws as `Loading.wait` */
  use(segment: number): number {
    const known = this.#held[segment]
    if (segment === this.#current && known?.isThere === true) return known.place
    this.#current = segment
    if (known === null) this.#restart(segment)
    else this.#release((held, other) => held.pass <= this.#pass && other < segment)
    this.#readAhead()
    return this.#arrived(segment)
  }

  /** Whether a segment can be used without waiting. */
  has(segment: number): boolean {
    const held = this.#held[segment]!
    return held !== null && (held.isThere || held.loading.isOver())
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
      this.#current = -1
      this.#drop(segment)
      throw error
    }
    held.isThere = true
    return held.place
  }

  /** Goes on from a segment that was not expected now: an earlier pass ended in the middle. */
  #restart(segment: number): void {
    this.#release(() => true)
    this.#next = segment
    this.#nextPass = this.#pass
  }

  #release(isOver: (held: Held, segment: number) => boolean): void {
    this.#held.forEach((held, segment) => {
      const { isPinned } = this.#segments[segment]!
      if (held !== null && !isPinned && segment !== this.#current && isOver(held, segment))
        this.#drop(segment)
    })
  }

  #drop(segment: number): void {
    const { place, loading, isThere } = this.#held[segment]!
    this.#held[segment] = null
    if (!isThere) loading.drop()
    if (place < this.#buffers) this.#free.push(place)
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
    const { isPinned } = this.#segments[segment]!
    if (!isPinned && this.#free.length === 0) return false
    const place = isPinned ? this.#buffers + segment : this.#free.shift()!
    try {
      const loading = this.#load(segment, place)
      this.#held[segment] = { place, loading, isThere: false, pass: this.#nextPass }
    } catch (error) {
      if (!isPinned) this.#free.push(place)
      throw error
    }
    return true
  }
}
