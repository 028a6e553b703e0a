import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { piecesOf } from '../src/pieces.js'
import { HAN, LETTER, LOWER, NUMBER, SPACE, UPPER, unicodeClasses } from '../src/unicode-classes.js'
import { officialDir } from './fixtures.js'

const classes = unicodeClasses()
const count = (bits: number): number =>
  classes.reduce((sum, bitsOf) => sum + ((bitsOf & bits) === bits ? 1 : 0), 0)

describe('class table', () => {
  it('has the class of every code point of Unicode 16.0', () => {
    const { runs } = JSON.parse(readFileSync(`${officialDir}/unicode_classes.json`, 'utf8')) as {
      runs: number[]
    }
    const expected = new Uint8Array(0x110000)
    for (let i = 0, at = 0; i < runs.length; at += runs[i]!, i += 2)
      expected.fill(runs[i + 1]!, at, at + runs[i]!)
    expect(Buffer.compare(classes, expected)).toBe(0)
  })

  it('has the published number of members in each class', () => {
    expect({
      han: count(HAN),
      upper: count(UPPER),
      lower: count(LOWER),
      letter: count(LETTER),
      number: count(NUMBER),
      space: count(SPACE)
    }).toEqual({ han: 99_030, upper: 42_584, lower: 42_953, letter: 141_028, number: 1_911, space: 25 })
  })
})

describe('pieces', () => {
  it.each([
    ' |中文',
    'A|中|B',
    'x|々|y',
    ' ⺀|x',
    '1〇〇|〇',
    '한국|ABC',
    'ABC한국|DEF',
    'HTMLParser',
    'camel|Case',
    "don't",
    "DON'T",
    "it'ſ",
    "we'Ll| they'VE| I'M| he'd",
    "1|'s",
    "a|'x",
    "a're|a",
    '!!\u0301',
    '\u0301a',
    ' \u0301',
    '!\n|/x',
    'a| \n| b',
    'a|  | b',
    'a|   ',
    'a|\t\t\n',
    '\x1c\x1c| a',
    '０１２|３',
    '123|456|7',
    ' |1',
    '-|1',
    '\r\n\r\n|a',
    '...\r\n\n| \n|x',
    'ǅa',
    '\ufeffa',
    '\u200ba'
  ])('of %j end at the bars', (barred) => {
    const pieces = barred.split('|')
    expect(piecesOf(pieces.join(''))).toEqual(pieces)
  })
})
