import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expectedFile } from '@k3/demo-model'
import { describe, expect, test } from 'vitest'
import { fixture, k3, k3Lines, k3Object, scratchFolder } from './k3.js'

const official = ['--tokenizer', fixture('tokenizer')]

interface Vectors {
  readonly texts: readonly { text: string; ids: number[]; ids_special?: number[]; pieces: string[] }[]
  readonly long: readonly {
    parts: [string, number][]
    allow_special: boolean
    num_ids: number
    sha256: string
  }[]
  readonly decode: readonly { ids: number[]; bytes_hex: string; text: string }[]
}
const { tokenizer: vectors } = JSON.parse(readFileSync(fixture('tokenizer/vectors.json'), 'utf8')) as {
  tokenizer: Vectors
}

describe('k3 tokens with the official vocabulary', () => {
  test('gives the ids of every text, a line each', async () => {
    const lines = vectors.texts.map(({ text }) => JSON.stringify(text))
    const plain = await k3Lines(['tokens', ...official], lines)
    expect(plain).toEqual(vectors.texts.map(({ ids }) => ({ ids })))
    const withPieces = await k3Lines(['tokens', ...official, '--pieces'], lines)
    expect(withPieces).toEqual(vectors.texts.map(({ ids, pieces }) => ({ ids, pieces })))
    const special = await k3Lines(['tokens', ...official, '--special'], lines)
    expect(special).toEqual(
      vectors.texts.map(({ ids, ids_special }) => ({ ids: ids_special === undefined ? ids : ids_special }))
    )
  })

  test('decodes every list of ids, a line each', async () => {
    const lines = vectors.decode.map(({ ids }) => JSON.stringify(ids))
    expect(await k3Lines(['tokens', ...official, '--decode'], lines)).toEqual(
      vectors.decode.map(({ text, bytes_hex }) => ({ text, bytes: bytes_hex }))
    )
  })

  test.each([false, true])('gives the ids of the long texts, special %s', async (special) => {
    const texts = vectors.long.filter(({ allow_special }) => allow_special === special)
    const lines = texts.map(({ parts }) => JSON.stringify(parts.map(([unit, n]) => unit.repeat(n)).join('')))
    const answers = await k3Lines(['tokens', ...official, ...(special ? ['--special'] : [])], lines)
    answers.forEach(({ ids }, i) => {
      expect((ids as number[]).length).toBe(texts[i]!.num_ids)
      expect(createHash('sha256').update(JSON.stringify(ids)).digest('hex')).toBe(texts[i]!.sha256)
    })
  })
})

describe('k3 tokens', () => {
  test('prints ids, and with --pieces how the text was cut', async () => {
    const ids = await k3(['tokens', ...official], { stdin: 'hello world' })
    expect(ids).toMatchObject({ code: 0, stdout: '22931 2695\n', stderr: '' })
    const pieces = await k3(['tokens', ...official, '--pieces'], { stdin: 'hello world' })
    expect(pieces.stdout).toBe('"hello"\n" world"\n')
    expect(await k3Object(['tokens', ...official, '--pieces', '--json'], 'hello world')).toEqual({
      ids: [22931, 2695],
      pieces: ['hello', ' world']
    })
    expect(await k3Lines(['tokens', ...official, '--pieces'], ['"hello world"'])).toEqual([
      { ids: [22931, 2695], pieces: ['hello', ' world'] }
    ])
  })

  test('uses the vocabulary of the demo model unless told otherwise', async () => {
    const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8')) as { cases: { prompt_ids: number[] }[] }
    const ids = cases[0]!.prompt_ids
    expect(await k3Object(['tokens', '--json'], 'The capital of France is')).toEqual({ ids })
  })

  test('takes a file, or - for standard input, byte for byte', async () => {
    const file = path.join(scratchFolder(), 'text.txt')
    const text = '\ufeffone\r\ntwo \n'
    writeFileSync(file, text)
    const { ids } = await k3Object(['tokens', file, '--json'])
    expect(await k3Object(['tokens', '-', '--json'], text)).toEqual({ ids })
    const decoded = await k3(['tokens', '--decode'], { stdin: JSON.stringify(ids) })
    expect(decoded.bytes.equals(readFileSync(file))).toBe(true)
    expect(await k3Object(['tokens', '--decode', '--json'], JSON.stringify(ids))).toEqual({
      text,
      bytes: Buffer.from(text).toString('hex')
    })
  })

  test.each(['[39, 72]', '39 72\n', '39,72', ' 39\n72 '])('decodes ids written as %j', async (stdin) => {
    expect(await k3(['tokens', '--decode'], { stdin })).toMatchObject({ code: 0, stdout: 'Hi' })
  })

  test('writes the bytes of half a character as they are', async () => {
    const [half] = vectors.decode.filter(({ text }) => text === '\ufffd')
    const { bytes } = await k3(['tokens', ...official, '--decode'], { stdin: JSON.stringify(half!.ids) })
    expect(bytes.toString('hex')).toBe(half!.bytes_hex)
  })

  test('knows the names of special tokens only with --special', async () => {
    const name = '<|end_of_msg|>'
    const { ids } = await k3Object(['tokens', ...official, '--json'], name)
    expect((ids as number[]).length).toBeGreaterThan(1)
    expect(await k3Object(['tokens', ...official, '--json', '--special'], name)).toEqual({ ids: [163586] })
  })

  test('takes half a surrogate pair in a JSON string as U+FFFD', async () => {
    const answers = await k3Lines(['tokens'], ['"a\\ud800b"', '"a\\ufffdb"', '"\\udc00"', '"\\ufffd"'])
    expect(answers[0]).toEqual(answers[1])
    expect(answers[2]).toEqual(answers[3])
  })

  test.each([
    ['ab\\xff', [0x61, 0x62, 0xff], 2],
    ['an unfinished character', [0x61, 0xe4, 0xbd], 1],
    ['a broken character', [0xe4, 0x61], 0],
    ['an overlong form', [0x41, 0x42, 0x43, 0xc1, 0x81], 3],
    ['a surrogate', [0x41, 0xed, 0xa0, 0x80], 1],
    ['UTF-16', [0xff, 0xfe, 0x41, 0x00], 0]
  ])('refuses %s with the offset of the fault', async (_, bytes, offset) => {
    const { code, stdout, stderr } = await k3(['tokens'], { stdin: Uint8Array.from(bytes) })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`standard input is not UTF-8 text: byte ${offset} `)
  })

  test('answers lines in order, and a bad one with an error in its place', async () => {
    const lines = ['"a"', 'nonsense', '7', '', '"b"\r', '"c"']
    const [a, nonsense, seven, empty, b, c] = await k3Lines(['tokens'], lines)
    expect([a, b, c].every((answer) => Array.isArray(answer!.ids))).toBe(true)
    expect([nonsense, seven, empty]).toEqual([
      { error: { code: 'ERR_USAGE', message: expect.stringMatching(/^line 2 is not JSON/) } },
      { error: { code: 'ERR_USAGE', message: 'line 3: expected a JSON string' } },
      { error: { code: 'ERR_USAGE', message: expect.stringMatching(/^line 4 is not JSON/) } }
    ])
    const [good, unknown, text] = await k3Lines(['tokens', '--decode'], ['[0]', '[99999999]', '"0"'])
    expect(good).toEqual({ text: '!', bytes: '21' })
    expect(unknown).toMatchObject({ error: { code: 'ERR_TOKENIZER_ID' } })
    expect(text).toMatchObject({ error: { code: 'ERR_USAGE' } })
    const { stdout } = await k3(['tokens', '--jsonl'], { stdin: Buffer.from('"\xff"\n"a"', 'latin1') })
    expect(stdout.split('\n')[0]).toContain('line 1 is not UTF-8 text: byte 1')
    expect(JSON.parse(stdout.split('\n')[1]!)).toEqual(a)
  })

  test('answers a hundred thousand lines', async () => {
    const lines = Array.from({ length: 100_000 }, (_, i) => JSON.stringify(`line ${i % 997}`))
    const answers = await k3Lines(['tokens'], lines)
    expect(answers.length).toBe(lines.length)
    const some = [0, 1, 996, 997, 65_535, 99_999]
    const alone = await k3Lines(
      ['tokens'],
      some.map((i) => lines[i]!)
    )
    expect(some.map((i) => answers[i])).toEqual(alone)
  })

  test.each([
    ['--json', '--jsonl'],
    ['--decode', '--special'],
    ['--decode', '--pieces']
  ])('refuses %s with %s', async (...flags) => {
    expect((await k3(['tokens', ...flags])).code).toBe(2)
  })

  test.each([
    ['a file that is not there', ['tokens', '/nowhere/at/all'], 2],
    ['a stream that is not there', ['tokens', '--jsonl', '/nowhere/at/all'], 2],
    ['a folder without vocabulary', ['tokens', '--tokenizer', '/nowhere/at/all'], 3],
    ['a second file', ['tokens', 'a', 'b'], 2],
    ['ids that are none', ['tokens', '--decode', fixture('tokenizer/TOKENIZER.md')], 2]
  ])('refuses %s', async (_, args, code) => {
    const outcome = await k3(args)
    expect(outcome).toMatchObject({ code, stdout: '' })
    expect(outcome.stderr).not.toBe('')
  })
})
