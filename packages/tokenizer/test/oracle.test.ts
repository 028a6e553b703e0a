import { describe, expect, it } from 'vitest'
import { createTokenizer, loadTokenizer, type Tokenizer } from '../src/index.js'
import { demoDir, officialDir, oracleFor, ranksFile, readRanks, singleBytes } from './fixtures.js'
import { randomText, seeded } from './random-text.js'

type Oracle = ReturnType<typeof oracleFor>

/** The texts whose ids differ; special names count in every fourth text. */
const differences = (tokenizer: Tokenizer, oracle: Oracle, texts: readonly string[]): string[] =>
  texts.filter((text, i) => {
    const special = i % 4 === 3
    const expected = special ? oracle.encode(text, 'all', []) : oracle.encode_ordinary(text)
    return tokenizer.encode(text, { special }).join() !== expected.join()
  })

const randomTexts = (seed: number, count: number): string[] => {
  const random = seeded(seed)
  return Array.from({ length: count }, () => randomText(random))
}

describe('ids equal those of npm tiktoken', () => {
  it.each([
    ['released', officialDir, 100_000],
    ['demo', demoDir, 10_000]
  ])(
    'for random texts with the %s vocabulary',
    (_, dir, count) => {
      const tokenizer = loadTokenizer(dir)
      const oracle = oracleFor(readRanks(dir), tokenizer)
      expect(differences(tokenizer, oracle, randomTexts(20_261_130, count))).toEqual([])
      oracle.free()
    },
    120_000
  )

  it.each([
    ['ab', 'two letters'],
    ['中文測試漢字', 'Han, three bytes each'],
    ['한국어', 'Hangul'],
    ['𠀀𠀁中a', 'three and four bytes'],
    ['漢é字!x', 'one to three bytes']
  ])('for random vocabularies over %s (%s), with partial and unreachable tokens', (alphabet) => {
    const random = seeded(alphabet.codePointAt(0)!)
    const characters = [...alphabet]
    const text = (longest: number): string =>
      Array.from(
        { length: 1 + random() * longest },
        () => characters[Math.floor(random() * characters.length)]
      ).join('')
    for (let round = 0; round < 12; round++) {
      const tokens = new Map(singleBytes().map((token) => [token.join(), token]))
      for (let i = 0; i < 10 * (round + 1); i++) {
        const bytes = new TextEncoder().encode(text(12))
        const start = Math.floor(random() * bytes.length)
        const token = bytes.slice(start, start + 2 + Math.floor(random() * 9))
        tokens.set(token.join(), token)
      }
      const ranks = ranksFile([...tokens.values()])
      const tokenizer = createTokenizer(ranks, { added_tokens_decoder: {} })
      const oracle = oracleFor(ranks, tokenizer)
      const texts = Array.from({ length: 400 }, (_, i) => text(i % 8 === 0 ? 150 : 12))
      expect(differences(tokenizer, oracle, texts)).toEqual([])
      oracle.free()
    }
  })
})
