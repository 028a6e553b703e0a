import assert from 'node:assert/strict'
import type { ExpertBatch, ExpertSource } from '../interfaces.js'
import type { ConformanceCase } from './conformance-case.js'

/** What the suite needs to know about a source that is open. */
export interface ExpertSourceUnderTest {
  readonly source: ExpertSource
  /** A layer with routed experts, and how many it has; more than the source has slots. */
  readonly layer: number
  readonly expertCount: number
  /** The bytes at `base` of the source's region. */
  readonly read: (base: number, bytes: number) => Uint8Array
  /** The bytes the expert's run has in the checkpoint. */
  readonly expected: (layer: number, expert: number) => Uint8Array
}

const ids = (...experts: number[]): Int32Array => Int32Array.from(experts)

/** Checks for an `ExpertSource`; `open` is called once for each. */
export const expertSourceCases = (open: () => Promise<ExpertSourceUnderTest>): readonly ConformanceCase[] => {
  const check = (name: string, body: (part: ExpertSourceUnderTest) => void): ConformanceCase => ({
    name: `expert source ${name}`,
    run: async () => body(await open())
  })
  const verify = (part: ExpertSourceUnderTest, batch: ExpertBatch, experts: Int32Array) => {
    experts.forEach((expert, i) => {
      const want = part.expected(part.layer, expert)
      const base = batch.take(i)
      assert.ok(base >= 0 && base + want.length <= part.source.region.bytes, 'a base lies inside the region')
      assert.deepEqual(part.read(base, want.length), want, `expert ${expert} has its own bytes`)
    })
  }
  return [
    check('gives every expert of a full batch its own bytes', (part) => {
      const all = ids(...Array.from({ length: part.source.slots }, (_, i) => i))
      const batch = part.source.begin(part.layer, all)
      verify(part, batch, all)
      batch.end()
    }),
    check('gives the same bytes again after everything else was read', (part) => {
      const { slots } = part.source
      for (let first = 0; first < part.expertCount; first += slots) {
        const count = Math.min(slots, part.expertCount - first)
        const some = ids(...Array.from({ length: count }, (_, i) => first + i))
        const batch = part.source.begin(part.layer, some)
        verify(part, batch, some)
        batch.end()
      }
      const batch = part.source.begin(part.layer, ids(0))
      verify(part, batch, ids(0))
      batch.end()
    }),
    check('takes the experts of a batch in any order, and more than once', (part) => {
      const some = ids(part.expertCount - 1, 0)
      const batch = part.source.begin(part.layer, some)
      assert.equal(batch.take(1), batch.take(1))
      verify(part, batch, some)
      batch.end()
    }),
    check('can be used after a batch was given up', (part) => {
      part.source.begin(part.layer, ids(0)).abort()
      const batch = part.source.begin(part.layer, ids(0))
      verify(part, batch, ids(0))
      batch.end()
    })
  ]
}
