import { describe, expect, it } from 'vitest'
import { Chunk } from '../src/chunk.js'
import { cutEnd } from '../src/cuts.js'
import { seeded } from './random-text.js'

const PYTHON_SPACE = new Set([
  ...[0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f],
  ...[0x205f, 0x3000, ...Array.from({ length: 11 }, (_, i) => 0x2000 + i)]
])

/** The rule as it is written: code points, chunks of 400,000, a run counter over `str.isspace()`. */
const cutsByRule = (text: string): string[] => {
  const codePoints = [...text]
  const parts: string[] = []
  for (let start = 0; start < codePoints.length; start += 400_000) {
    let part = ''
    let run = 0
    let runIsSpace: boolean | undefined
    for (const character of codePoints.slice(start, start + 400_000)) {
      const space = PYTHON_SPACE.has(character.codePointAt(0)!)
      run = space === runIsSpace ? run + 1 : 1
      runIsSpace = space
      if (run > 25_000) {
        parts.push(part)
        part = ''
        run = 1
      }
      part += character
    }
    parts.push(part)
  }
  return parts
}

const cuts = (text: string): string[] => {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const chunk = new Chunk()
  const parts: string[] = []
  for (let unit = 0; unit < text.length; ) {
    unit = chunk.load(text, unit)
    for (let at = 0; at < chunk.lengthBytes; ) {
      const end = cutEnd(chunk.bytes, at, chunk.lengthBytes)
      parts.push(decoder.decode(chunk.bytes.subarray(at, end)))
      at = end
    }
  }
  return parts
}

const sameParts = (text: string): void => {
  const expected = cutsByRule(text)
  const found = cuts(text)
  expect(found.map((x) => x.length)).toEqual(expected.map((x) => x.length))
  expect(found.join('') === expected.join('')).toBe(true)
}

describe('cuts', () => {
  it.each([...PYTHON_SPACE, 0x08, 0x0e, 0x1b, 0x84, 0x86, 0x200b, 0x180e, 0x2027, 0x202a, 0x2060, 0xfeff])(
    'count U+%i as the rule does',
    (codePoint) => {
      const character = String.fromCodePoint(codePoint)
      sameParts(['a'.repeat(24_990), character, 'b'.repeat(20), character.repeat(25_001), ' '].join(''))
    }
  )

  it('fall where the rule has them for runs near 25,000 of one- to four-byte characters', () => {
    const random = seeded(25_000)
    const kinds = ['a', 'é', '漢', '😀', ' ', '\u3000', '\x85']
    for (let round = 0; round < 25; round++) {
      let text = ''
      for (let run = 0; run < 4; run++) {
        const kind = kinds[Math.floor(random() * kinds.length)]!
        const length = random() < 0.3 ? random() * 20 : 24_997 + random() * 6 + (random() < 0.2 ? 25_000 : 0)
        text += kind.repeat(length)
      }
      sameParts(text)
    }
  })

  it('fall at 400,000 code points whatever their UTF-16 length', () => {
    sameParts('word '.repeat(160_001))
    sameParts('😀 '.repeat(300_001))
    sameParts(`${'ab '.repeat(133_333)}😀😀 ${'c '.repeat(10)}`)
    sameParts(`${'ab '.repeat(133_333)}c😀😀 ${'c '.repeat(10)}`)
  })

  it('keep a lone surrogate at a chunk edge as one code point', () => {
    const chunk = new Chunk()
    for (const text of ['\ud83d', 'x\ud83d', '\ud83dx'].map(
      (end) => `${'a '.repeat(199_999)}${end}${'b '.repeat(9)}`
    )) {
      expect(chunk.load(text, 0)).toBe(400_000)
      expect(chunk.load(text, 400_000)).toBe(text.length)
    }
  })
})
