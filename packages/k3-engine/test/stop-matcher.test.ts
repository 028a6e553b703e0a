import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { StopMatcher } from '../src/stop-matcher.js'

const run = (pieces: readonly string[], stops: readonly string[]) => {
  const matcher = new StopMatcher(stops)
  let text = ''
  for (const piece of pieces) {
    text += matcher.push(piece)
    if (matcher.matched) return { text, matched: true }
  }
  return { text: text + matcher.flush(), matched: false }
}

describe('StopMatcher', () => {
  it('matches across borders and gives nothing of the match out', () => {
    expect(run(['one ST', 'O', 'P two'], ['STOP'])).toEqual({ text: 'one ', matched: true })
  })

  it('gives back what it held when no stop came', () => {
    expect(run(['one ST', 'O'], ['STOP'])).toEqual({ text: 'one STO', matched: false })
  })

  it('takes the stop that begins first', () => {
    expect(run(['a b c'], ['c', 'b'])).toEqual({ text: 'a ', matched: true })
  })

  it('agrees with a search of the whole text up to the piece that completes a stop', () => {
    const piece = fc.stringMatching(/^[ab]{0,4}$/)
    const stop = fc.stringMatching(/^[ab]{1,4}$/)
    fc.assert(
      fc.property(fc.array(piece), stop, (pieces, only) => {
        const at = pieces.join('').indexOf(only)
        const want =
          at === -1
            ? { text: pieces.join(''), matched: false }
            : { text: pieces.join('').slice(0, at), matched: true }
        expect(run(pieces, [only])).toEqual(want)
      })
    )
  })
})
