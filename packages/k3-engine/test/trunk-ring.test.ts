import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type RingSegment, TrunkRing } from '../src/trunk-ring.js'

const FAULT = 'a segment that cannot be read'

/**
 * Memory by place, filled when a load has ended: a load ends what lies there, but for the other segments of its group.
 * Complains about a load onto what is being filled or in use.
 */
class FakeDrive {
  readonly log: string[] = []
  /** Segments of each place, and whether they have arrived. */
  readonly memory = new Map<number, Map<number, boolean>>()
  /** Segments that fail. */
  readonly broken = new Set<number>()
  /** The segment nobody may write onto now. */
  inUse = -1
  readonly #segments: readonly RingSegment[]

  constructor(segments: readonly RingSegment[]) {
    this.#segments = segments
  }

  readonly load = (segment: number, place: number) => {
    const { group } = this.#segments[segment]!
    const there = this.memory.get(place) ?? new Map<number, boolean>()
    const beside = [...there].filter(([other]) => other !== segment && this.#segments[other]!.group === group)
    for (const [other, hasArrived] of there) {
      if (beside.some(([one]) => one === other)) continue
      expect([other, hasArrived]).toEqual([other, true])
      expect(other).not.toBe(this.inUse)
    }
    this.memory.set(place, new Map([...beside, [segment, false]]))
    this.log.push(`read ${segment}`)
    return {
      wait: () => {
        this.log.push(`wait ${segment}`)
        if (this.broken.has(segment)) throw new Error(FAULT)
        this.memory.get(place)!.set(segment, true)
      },
      isOver: () => false,
      drop: () => {
        this.log.push(`drop ${segment}`)
        this.memory.get(place)!.delete(segment)
      }
    }
  }

  use(ring: TrunkRing, segment: number): void {
    this.inUse = -1
    const place = ring.use(segment)
    expect(this.memory.get(place)!.get(segment)).toBe(true)
    this.inUse = segment
  }

  pass(ring: TrunkRing, segments: readonly number[], withHead = true): string[] {
    const from = this.log.length
    this.inUse = -1
    ring.begin(withHead)
    for (const segment of segments) this.use(ring, segment)
    return this.log.slice(from)
  }

  tryPass(ring: TrunkRing, segments: readonly number[], withHead: boolean): void {
    try {
      this.pass(ring, segments, withHead)
    } catch (error) {
      expect((error as Error).message).toBe(FAULT)
    }
  }
}

const layers = (count: number, pinned: readonly number[] = []): RingSegment[] =>
  Array.from({ length: count }, (_, layer) => ({ layer, isPinned: pinned.includes(layer), group: layer }))
const head = (group: number): RingSegment => ({ layer: null, isPinned: false, group })

const ringOf = (segments: readonly RingSegment[], buffers: number) => {
  const drive = new FakeDrive(segments)
  return { drive, ring: new TrunkRing(segments, buffers, drive.load) }
}

describe('a ring of buffers', () => {
  it('reads the next segment as soon as a buffer is free, and on into the next pass', () => {
    const { drive, ring } = ringOf(layers(4), 2)
    const first = ['read 0', 'read 1', 'wait 0', 'read 2', 'wait 1', 'read 3', 'wait 2', 'read 0', 'wait 3']
    expect(drive.pass(ring, [0, 1, 2, 3])).toEqual(first)
    expect([0, 1, 3].map((segment) => ring.has(segment))).toEqual([false, false, true])
    const second = ['read 1', 'wait 0', 'read 2', 'wait 1', 'read 3', 'wait 2', 'read 0', 'wait 3']
    expect(drive.pass(ring, [0, 1, 2, 3])).toEqual(second)
  })

  it('reads on when a pass is over, and keeps what nothing needs the buffer of', () => {
    const { drive, ring } = ringOf([...layers(3), head(3)], 3)
    drive.pass(ring, [0, 1, 2, 3])
    drive.inUse = -1
    const before = drive.log.length
    ring.end()
    expect(drive.log.slice(before)).toEqual(['read 2'])
    ring.end()
    expect(drive.log.slice(before)).toEqual(['read 2'])
  })

  it('reads a pinned segment once', () => {
    const { drive, ring } = ringOf(layers(4, [1, 3]), 2)
    drive.pass(ring, [0, 1, 2, 3])
    drive.pass(ring, [0, 1, 2, 3])
    expect(drive.log.filter((line) => line === 'read 1' || line === 'read 3')).toHaveLength(2)
  })

  it('reads nothing again when all of it fits', () => {
    const { drive, ring } = ringOf([...layers(2), head(2)], 3)
    drive.pass(ring, [0, 1, 2])
    expect(drive.pass(ring, [0, 1, 2])).toEqual([])
  })

  it('reads the head only in passes that need it', () => {
    const { drive, ring } = ringOf([...layers(3), head(3)], 2)
    drive.pass(ring, [0, 1, 2], false)
    drive.pass(ring, [0, 1, 2], false)
    expect(drive.log).not.toContain('read 3')
    drive.pass(ring, [0, 1, 2, 3])
    expect(drive.log.filter((line) => line === 'read 3')).toHaveLength(1)
  })

  it('starts over after a pass that ended in the middle, and drops what was on its way', () => {
    const { drive, ring } = ringOf(layers(5), 3)
    drive.pass(ring, [0, 1])
    // 1 and 2 can stay
    expect(drive.pass(ring, [0, 1, 2, 3, 4]).slice(0, 3)).toEqual(['drop 3', 'read 0', 'wait 0'])
  })

  it('finds every segment in any order, also before the first pass', () => {
    const { drive, ring } = ringOf(layers(6), 2)
    for (const segment of [1, 4, 1, 0, 5, 4, 2, 2, 3, 0]) drive.use(ring, segment)
  })

  it('gives a fault to whoever needs the segment, and can read it later', () => {
    const { drive, ring } = ringOf(layers(3), 2)
    drive.broken.add(1)
    ring.begin(true)
    drive.use(ring, 0)
    expect(() => drive.use(ring, 1)).toThrow(FAULT)
    drive.broken.clear()
    drive.pass(ring, [0, 1, 2])
  })

  it('ends what is on its way when it is closed', () => {
    const { drive, ring } = ringOf(layers(3), 2)
    ring.begin(true)
    ring.close()
    expect(drive.log).toEqual(['read 0', 'read 1', 'drop 0', 'drop 1'])
  })

  it('reads a group into one buffer, one segment after the other, and frees it when all of them are over', () => {
    const { drive, ring } = ringOf([...layers(3), head(2), head(2)], 2)
    const first = ['read 0', 'read 1', 'wait 0', 'read 2', 'read 3', 'read 4', 'wait 1', 'read 0', 'wait 2']
    expect(drive.pass(ring, [0, 1, 2, 3, 4])).toEqual([...first, 'wait 3', 'wait 4'])
    drive.inUse = -1
    const before = drive.log.length
    ring.end()
    expect(drive.log.slice(before)).toEqual(['read 1'])
  })

  it('reads a group without its end when the pass does not need it, and the end behind it when the next one does', () => {
    const { drive, ring } = ringOf([...layers(2), head(1)], 2)
    expect(drive.pass(ring, [0, 1], false)).not.toContain('read 2')
    expect(drive.pass(ring, [0, 1, 2])).toEqual(['read 2', 'wait 2'])
  })

  it('never gives a place that holds something else, whatever passes end early, fail or go backwards', () => {
    const shape = fc.record({
      pinned: fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }),
      headCount: fc.nat(2),
      shares: fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
      buffers: fc.integer({ min: 2, max: 4 })
    })
    const pass = fc.record({
      withHead: fc.boolean(),
      stop: fc.nat(8),
      broken: fc.option(fc.nat(7)),
      again: fc.option(fc.nat(7))
    })
    const property = fc.property(
      shape,
      fc.array(pass, { maxLength: 8 }),
      ({ pinned, headCount, shares, buffers }, passes) => {
        const groups = shares.map((_, i) => shares.slice(0, i + 1).filter((isShared) => !isShared).length)
        const segments = pinned.map((isPinned, layer) => ({ layer, isPinned, group: groups[layer]! }))
        const heads = groups.slice(pinned.length, pinned.length + headCount).map(head)
        const { drive, ring } = ringOf([...segments, ...heads], buffers)
        for (const { withHead, stop, broken, again } of passes) {
          drive.broken.clear()
          if (broken !== null) drive.broken.add(broken)
          const end = Math.min(stop, pinned.length + (withHead ? heads.length : 0))
          const order = Array.from({ length: end }, (_, segment) => segment)
          if (again !== null) order.push(again % pinned.length)
          drive.tryPass(ring, order, withHead)
        }
        drive.inUse = -1
        ring.close()
      }
    )
    fc.assert(property, { numRuns: 500 })
  })
})
