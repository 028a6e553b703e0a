import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExpertGroups } from '../src/expert-groups.js'

describe('ExpertGroups', () => {
  it('keeps the order of the router for one token', () => {
    const groups = new ExpertGroups(1, 3, 8)
    groups.group(Int32Array.of(5, 1, 7), 1, 3)
    expect([...groups.experts.subarray(0, groups.count)]).toEqual([5, 1, 7])
    expect([...groups.pairOf]).toEqual([0, 1, 2])
  })

  it('gives every choice a pair of its own, beside the others of its expert', () => {
    const chosen = fc.integer({ min: 1, max: 9 }).chain((tokens) =>
      fc.array(fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6], { minLength: 3, maxLength: 3 }), {
        minLength: tokens,
        maxLength: tokens
      })
    )
    fc.assert(
      fc.property(chosen, (rows) => {
        const groups = new ExpertGroups(9, 3, 7)
        groups.group(Int32Array.from(rows.flat()), rows.length, 3)
        const seen = new Set<number>()
        rows.flat().forEach((expert, choice) => {
          const pair = groups.pairOf[choice]!
          const group = groups.experts.subarray(0, groups.count).indexOf(expert)
          expect(pair >= groups.starts[group]! && pair < groups.starts[group + 1]!).toBe(true)
          expect(groups.tokens[pair]).toBe(Math.floor(choice / 3))
          seen.add(pair)
        })
        expect(seen.size).toBe(rows.length * 3)
      })
    )
  })
})
