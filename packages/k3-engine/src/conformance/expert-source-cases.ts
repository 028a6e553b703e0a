import assert from 'node:assert/strict'
import type { ExpertBatch, ExpertSource } from '../interfaces.js'
import type { ConformanceCase } from './conformance-case.js'

/** What the suite needs to know about a source that is open. */
export interface ExpertSourceUnderTest {
  readonly source: ExpertSource
  /** A layer with routed experts, and how many it has; more than the source can hold. */
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
  /** Takes all experts of a batch and looks at each while it is given out. */
  const verify = (part: ExpertSourceUnderTest, batch: ExpertBatch, experts: Int32Array) => {
    const positions = new Int32Array(experts.length)
    const bases = new Float64Array(experts.length)
    const seen = new Set<number>()
    for (let count = batch.arrive(positions, bases); count > 0; count = batch.arrive(positions, bases)) {
      for (let i = 0; i < count; i++) {
        const expert = experts[positions[i]!]!
        const base = bases[i]!
        const want = part.expected(part.layer, expert)
        assert.ok(
          base >= 0 && base + want.length <= part.source.region.bytes,
          'a base lies inside the region'
        )
        assert.deepEqual(part.read(base, want.length), want, `expert ${expert} has its own bytes`)
        assert.ok(!seen.has(expert), `expert ${expert} is given out once`)
        seen.add(expert)
      }
    }
    assert.equal(seen.size, experts.length, 'every expert is given out')
  }
  const runAll = (part: ExpertSourceUnderTest, experts: Int32Array, tokens = 1) => {
    const batch = part.source.begin(part.layer, experts, tokens)
    verify(part, batch, experts)
    batch.end()
  }
  return [
    check('gives every expert of a layer its own bytes, however many it can hold', (part) =>
      runAll(part, ids(...Array.from({ length: part.expertCount }, (_, i) => i)))
    ),
    check('gives them to any number of tokens', (part) => {
      const all = ids(...Array.from({ length: part.expertCount }, (_, i) => i))
      for (const tokens of [2, 64, 1]) runAll(part, all, tokens)
    }),
    check('gives the same bytes again after everything else was read', (part) => {
      for (let expert = 0; expert < part.expertCount; expert++) runAll(part, ids(expert))
      runAll(part, ids(0))
    }),
    check('takes the experts in any order', (part) => runAll(part, ids(part.expertCount - 1, 0))),
    check('can be used after a batch was given up', (part) => {
      const all = ids(...Array.from({ length: part.expertCount }, (_, i) => i))
      part.source.begin(part.layer, ids(0), 1).abort()
      const begun = part.source.begin(part.layer, all, 1)
      begun.arrive(new Int32Array(all.length), new Float64Array(all.length))
      begun.abort()
      runAll(part, all)
    })
  ]
}
