import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExpertGroups } from '../src/expert-groups.js'
import { ExpertWave } from '../src/expert-wave.js'

const chosenRows = fc.integer({ min: 1, max: 9 }).chain((tokens) =>
  fc.array(fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6], { minLength: 3, maxLength: 3 }), {
    minLength: tokens,
    maxLength: tokens
  })
)

describe('ExpertGroups', () => {
  it('keeps the order of the router for one token', () => {
    const groups = new ExpertGroups(1, 3, 8)
    groups.group(Int32Array.of(5, 1, 7), 1, 3)
    expect([...groups.experts.subarray(0, groups.count)]).toEqual([5, 1, 7])
    expect([...groups.choices]).toEqual([0, 1, 2])
  })

  it('puts every choice beside the others of its expert', () => {
    fc.assert(
      fc.property(chosenRows, (rows) => {
        const groups = new ExpertGroups(9, 3, 7)
        groups.group(Int32Array.from(rows.flat()), rows.length, 3)
        for (let i = 0; i < groups.count; i++) {
          const own = groups.choices.subarray(groups.starts[i], groups.starts[i + 1])
          expect([...own].every((choice) => rows.flat()[choice] === groups.experts[i])).toBe(true)
        }
        expect(new Set(groups.choices.subarray(0, groups.starts[groups.count])).size).toBe(rows.length * 3)
      })
    )
  })
})

describe('ExpertWave', () => {
  it('gives every choice a pair of its own, in whatever order and company its expert arrives', () => {
    fc.assert(
      fc.property(chosenRows, fc.infiniteStream(fc.nat()), (rows, random) => {
        const groups = new ExpertGroups(9, 3, 7)
        groups.group(Int32Array.from(rows.flat()), rows.length, 3)
        const wave = new ExpertWave(groups, 3)
        wave.restart()
        const left = Array.from({ length: groups.count }, (_, i) => i)
        const expertOf = new Map<number, number>()
        while (left.length > 0) {
          const count = 1 + (random.next().value % left.length)
          for (let i = 0; i < count; i++)
            wave.positions[i] = left.splice(random.next().value % left.length, 1)[0]!
          wave.accept(count)
          for (let i = 0; i < count; i++)
            for (let pair = wave.starts[i]!; pair < wave.starts[i + 1]!; pair++)
              expertOf.set(pair, groups.experts[wave.positions[i]!]!)
        }
        rows.flat().forEach((expert, choice) => {
          const pair = wave.pairOf[choice]!
          expect(expertOf.get(pair)).toBe(expert)
          expect(wave.tokens[pair]).toBe(Math.floor(choice / 3))
        })
        expect(expertOf.size).toBe(rows.length * 3)
      })
    )
  })
})
