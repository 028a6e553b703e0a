import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MinHeap } from '../src/min-heap.js'
import { loadDemo, loadOfficial } from './fixtures.js'
import { seeded } from './random-text.js'

const official = loadOfficial()
const demo = loadDemo()
const wellFormed = (text: string): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(text))

const wrongType = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })

describe('encode', () => {
  it('gives no ids for no text and adds nothing', () => {
    expect(official.encode('')).toEqual([])
    expect(official.encode('', { special: true })).toEqual([])
    expect(official.encode('Hello')).toEqual([19_180])
  })

  it('takes special names as text unless asked, whatever surrounds them', () => {
    const text = 'a<|open|>b<|reserved_token_163700|><|reserved_token_163586|>[EOS'
    expect(official.encode(text).every((id) => id < 163_584)).toBe(true)
    const ids = official.encode(text, { special: true })
    expect(ids.filter((id) => id >= 163_584)).toEqual([163_587, 163_700])
    expect(official.decode(ids)).toBe(text)
  })

  it('tokenizes each stretch between special names alone', () => {
    const between = official.encode('a  <|sep|> b', { special: true })
    expect(between).toEqual([...official.encode('a  '), 163_589, ...official.encode(' b')])
  })

  it.each(['\ud83d', 'a\ud83d', '\udc4d', '\udc4d\ud83d', 'x\ud83d\ud83d\udc4dy'])(
    'reads the lone surrogate in %j as U+FFFD',
    (text) => {
      expect(official.encode(text)).toEqual(official.encode(wellFormed(text)))
      expect(official.encode(text, { special: true })).toEqual(official.encode(wellFormed(text)))
    }
  )

  it('encodes each byte of the vocabulary and "newlines" as the merges have it', () => {
    expect(official.decode(official.encode('newlines'))).toBe('newlines')
    for (let byte = 0; byte < 128; byte++) {
      const text = String.fromCharCode(byte)
      expect(official.tokenBytes(official.encode(text)[0]!)).toEqual(Uint8Array.of(byte))
    }
  })

  it('refuses what is no string', () => {
    const encode = official.encode.bind(official) as (text: unknown) => number[]
    const pieces = official.pieces.bind(official) as (text: unknown) => string[]
    for (const value of [undefined, null, 7, ['a'], new Uint8Array(1)]) {
      expect(() => encode(value)).toThrow(wrongType)
      expect(() => pieces(value)).toThrow(wrongType)
    }
  })

  it('refuses ids that cannot be iterated', () => {
    const decode = official.decode.bind(official) as (ids: unknown) => string
    const decodeBytes = official.decodeBytes.bind(official) as (ids: unknown) => Uint8Array
    for (const value of [undefined, null, 7, {}, { length: 1, 0: 5 }]) {
      expect(() => decode(value)).toThrow(wrongType)
      expect(() => decodeBytes(value)).toThrow(wrongType)
    }
  })

  it('is undone by decode in both modes with both vocabularies', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        for (const tokenizer of [official, demo]) {
          expect(tokenizer.decode(tokenizer.encode(text))).toBe(text)
          expect(tokenizer.decode(tokenizer.encode(text, { special: true }))).toBe(text)
        }
      }),
      { numRuns: 2_000, seed: 5 }
    )
  })

  it('gives the same ids again after other texts have passed through', () => {
    const texts = Array.from(
      { length: 400 },
      (_, i) => `${'piece '.repeat(i % 7)}${(i * 7919).toString(36)}漢字${i}`
    )
    const first = texts.map((text) => official.encode(text))
    expect(
      [...texts]
        .reverse()
        .map((text) => official.encode(text))
        .reverse()
    ).toEqual(first)
    const some = texts.slice(0, 40)
    expect(some.map((text) => loadDemo().encode(text))).toEqual(some.map((text) => demo.encode(text)))
  })
})

const random = seeded(99)
const repeat = (length: number, character: () => string): string => Array.from({ length }, character).join('')
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

describe('hostile text', () => {
  it.each([
    ['a', 'a'.repeat(1_000_000)],
    ['漢', '漢'.repeat(333_333)],
    ['spaces', ' '.repeat(1_000_000)],
    ['base64', repeat(1_000_000, () => BASE64[Math.floor(random() * 64)]!)],
    ['line feeds', '\n'.repeat(200_000)],
    ['underscores', '_'.repeat(200_000)],
    ['^', '^'.repeat(1_000_000)],
    ['😀', '😀'.repeat(200_000)],
    ['marks', 'e\u0301'.repeat(100_000)],
    ['any Han', repeat(200_000, () => String.fromCodePoint(0x4e00 + Math.floor(random() * 20_000)))],
    ['any small letters', repeat(200_000, () => String.fromCharCode(97 + Math.floor(random() * 26)))],
    ['beginnings of special names', '<|reserved_token_'.repeat(20_000)]
  ])(
    'of %s is encoded and decoded',
    (_, text) => {
      expect(official.decode(official.encode(text, { special: true })) === text).toBe(true)
    },
    60_000
  )
})

describe('MinHeap', () => {
  it('gives its keys in ascending order, pushes in between included', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(50), { nil: undefined })), (steps) => {
        const heap = new MinHeap(steps.length)
        const expected: number[] = []
        for (const key of steps) {
          if (key !== undefined) {
            heap.push(key)
            expected.push(key)
            expected.sort((a, b) => a - b)
          } else if (expected.length > 0) {
            expect(heap.pop()).toBe(expected.shift())
          }
          expect(heap.size).toBe(expected.length)
        }
      })
    )
  })
})
