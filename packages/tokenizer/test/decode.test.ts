import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TokenizerError } from '../src/index.js'
import { loadDemo, loadOfficial } from './fixtures.js'

const official = loadOfficial()
const demo = loadDemo()

/** The id of each one-byte token. */
const byteId = Array.from({ length: 256 }, (_, id) => id).sort(
  (a, b) => official.tokenBytes(a)[0]! - official.tokenBytes(b)[0]!
)
const idsOfBytes = (bytes: Iterable<number>): number[] => Array.from(bytes, (byte) => byteId[byte]!)
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** What each push gives, then the flush. */
const streamed = (ids: readonly number[]): string[] => {
  const stream = official.stream()
  return [...ids.map((id) => stream.push(id)), stream.flush()]
}

describe('released vocabulary', () => {
  it('has the published facts', () => {
    const decoder = new TextDecoder('utf-8', { fatal: true })
    let longest = 0
    let invalid = 0
    for (let id = 0; id < 163_584; id++) {
      const bytes = official.tokenBytes(id)
      longest = Math.max(longest, bytes.length)
      try {
        decoder.decode(bytes)
      } catch {
        invalid++
      }
    }
    expect({ longest, invalid, vocabSize: official.vocabSize }).toEqual({
      longest: 256,
      invalid: 1_172,
      vocabSize: 163_840
    })
    const byteOrder = Array.from({ length: 256 }, (_, id) => official.tokenBytes(id)[0])
    const range = (from: number, to: number): number[] =>
      Array.from({ length: to - from + 1 }, (_, i) => from + i)
    expect(byteOrder).toEqual([
      ...[range(0x21, 0x7e), range(0xa1, 0xac), range(0xae, 0xff), range(0x00, 0x20)].flat(),
      ...[[0x7f], range(0x80, 0xa0), [0xad]].flat()
    ])
  })

  it('names all 256 special ids, reserved ones by their absolute id', () => {
    expect(official.specials.size).toBe(256)
    expect([...official.specials.values()]).toEqual(Array.from({ length: 256 }, (_, i) => 163_584 + i))
    expect(official.specials.get('<|end_of_msg|>')).toBe(163_586)
    expect(official.specials.get('[PAD]')).toBe(163_839)
    expect(official.specials.get('<|reserved_token_163700|>')).toBe(163_700)
    expect(official.specials.has('<|reserved_token_163586|>')).toBe(false)
    expect(demo.specials.get('<|open|>')).toBe(1_731)
    expect(demo.specials.get('<|reserved_token_1736|>')).toBe(1_736)
  })
})

describe('decode', () => {
  it('gives the bytes of every id, and every special name encodes to its id only when asked', () => {
    for (const tokenizer of [official, demo]) {
      const ids = Array.from({ length: tokenizer.vocabSize }, (_, id) => id)
      const bytes = ids.map((id) => tokenizer.tokenBytes(id))
      expect(bytes.every((x) => x.length > 0)).toBe(true)
      expect(Buffer.compare(tokenizer.decodeBytes(ids), Buffer.concat(bytes))).toBe(0)
      expect(new Set(bytes.map((x) => Buffer.from(x).toString('latin1'))).size).toBe(ids.length)
      for (const [name, id] of tokenizer.specials) {
        expect(tokenizer.decode([id])).toBe(name)
        expect(tokenizer.encode(name, { special: true })).toEqual([id])
        expect(tokenizer.encode(name).every((x) => x < tokenizer.vocabSize - 256)).toBe(true)
      }
    }
  })

  it.each([-1, 163_840, 2 ** 31, 2 ** 53, Number.NaN, 0.5, '7' as unknown as number])(
    'refuses the id %s',
    (id) => {
      const calls = [
        () => official.decode([0, id]),
        () => official.decodeBytes([id]),
        () => official.tokenBytes(id),
        () => official.stream().push(id)
      ]
      for (const call of calls) {
        expect(call).toThrow(TokenizerError)
        expect(call).toThrow(expect.objectContaining({ code: 'ERR_TOKENIZER_ID', id }))
      }
    }
  )

  it('drops exactly the 13 flagged ids when special tokens are skipped', () => {
    const dropped = [...official.specials].filter(
      ([, id]) => official.decode([id], { skipSpecial: true }) === ''
    )
    expect(dropped.map(([name]) => name)).toEqual([
      ...[
        '[BOS]',
        '[EOS]',
        '<|end_of_msg|>',
        '[start_header_id]',
        '[end_header_id]',
        '[EOT]',
        '<|media_begin|>'
      ],
      ...['<|media_content|>', '<|media_end|>', '<|media_pad|>', '<osagent_mode>', '[UNK]', '[PAD]']
    ])
    const stream = official.stream({ skipSpecial: true })
    expect([163_587, 19_180, 163_586].map((id) => stream.push(id))).toEqual(['<|open|>', 'Hello', ''])
  })

  it('takes any iterable and gives arrays that the caller owns', () => {
    const ids = official.encode('Grüße, 世界')
    expect(official.decode(new Set(ids))).toBe('Grüße, 世界')
    expect(official.decode(Uint32Array.from(ids))).toBe('Grüße, 世界')
    official.tokenBytes(ids[0]!).fill(0)
    official.decodeBytes([ids[0]!]).fill(0)
    expect(official.decode(ids)).toBe('Grüße, 世界')
  })

  it('keeps a leading U+FEFF', () => {
    expect(official.decode(official.encode('\ufeffa'))).toBe('\ufeffa')
    expect(streamed(official.encode('\ufeffa')).join('')).toBe('\ufeffa')
    expect(streamed(idsOfBytes(utf8('\ufeff\ufeff'))).join('')).toBe('\ufeff\ufeff')
  })
})

describe('stream', () => {
  it.each(['é', '漢', '😀', '\ufffd', '\u{10ffff}'])(
    'gives %s once its last byte is in, and no U+FFFD before',
    (text) => {
      const ids = idsOfBytes(utf8(text))
      expect(streamed(ids)).toEqual([...Array<string>(ids.length - 1).fill(''), text, ''])
    }
  )

  it('gives U+FFFD for an unfinished character when another one begins', () => {
    expect(streamed(idsOfBytes([0xe4, 0xbd, 0x20, 0x61]))).toEqual(['', '', '\ufffd ', 'a', ''])
  })

  it('gives an unfinished character once when flushed, and is then as new', () => {
    const stream = official.stream()
    expect(stream.push(byteId[0xf0]!) + stream.push(byteId[0x9f]!)).toBe('')
    expect([stream.flush(), stream.flush(), stream.push(byteId[0x61]!)]).toEqual(['\ufffd', '', 'a'])
  })

  it.each([
    [[0xe0, 0x80], ['\ufffd\ufffd']],
    [[0xed, 0xa0], ['\ufffd\ufffd']],
    [[0xf4, 0x90], ['\ufffd\ufffd']],
    [[0xf0, 0x8f], ['\ufffd\ufffd']],
    [[0xc1, 0xf5], ['\ufffd\ufffd']],
    [[0xf0, 0x90], ['']]
  ])('holds back the bytes %j only if a character can come of them', (bytes, expected) => {
    expect([streamed(idsOfBytes(bytes)).slice(0, -1).join('')]).toEqual(expected)
  })

  it('gives what decode gives at every cut, for any ids', () => {
    const id = fc.oneof(
      fc.nat(255),
      fc.nat(163_839),
      fc.constantFrom(...idsOfBytes([0xe4, 0xbd, 0xa0, 0xf0, 0x9f, 0x80]))
    )
    fc.assert(
      fc.property(fc.array(id, { maxLength: 12 }), (ids) => {
        for (let cut = 0; cut <= ids.length; cut++) {
          expect(streamed(ids.slice(0, cut)).join('')).toBe(official.decode(ids.slice(0, cut)))
        }
      }),
      { numRuns: 1_000, seed: 3 }
    )
  })

  it('holds back at most 3 bytes of well-formed text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 20 }), (text) => {
        const stream = official.stream()
        let pushed = 0
        let given = 0
        for (const byte of utf8(text)) {
          given += utf8(stream.push(byteId[byte]!)).length
          pushed++
          expect([0, 1, 2, 3]).toContain(pushed - given)
        }
        expect(given).toBe(pushed)
      }),
      { numRuns: 500, seed: 4 }
    )
  })
})
