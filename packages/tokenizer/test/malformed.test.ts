import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTokenizer, loadTokenizer, type TokenizerError } from '../src/index.js'
import { demoDir, officialDir, ranksFile, readRanks, singleBytes } from './fixtures.js'

const demoRanks = Buffer.from(readRanks(demoDir)).toString('latin1')
const demoConfig = JSON.parse(readFileSync(`${demoDir}/tokenizer_config.json`, 'utf8')) as object
const emptyConfig = { added_tokens_decoder: {} }
const latin1 = (text: string): Uint8Array => Buffer.from(text, 'latin1')

/** The error of a call that must fail. */
const errorOf = (call: () => unknown): TokenizerError => {
  try {
    call()
  } catch (error) {
    return error as TokenizerError
  }
  throw new Error('expected the call to throw')
}

/** The demo ranks with one line changed, 1-based. */
const withLine = (line: number, change: (text: string) => string): Uint8Array => {
  const lines = demoRanks.split('\n')
  lines[line - 1] = change(lines[line - 1]!)
  return latin1(lines.join('\n'))
}

describe('a ranks file is refused', () => {
  it.each<[string, string, number, Uint8Array]>([
    ['is empty', 'ERR_TOKENIZER_LINE', 1, new Uint8Array(0)],
    ['is cut inside a line', 'ERR_TOKENIZER_LINE', 1728, latin1(demoRanks.slice(0, -2))],
    ['has no space in a line', 'ERR_TOKENIZER_LINE', 9, withLine(9, (x) => x.replace(' ', ''))],
    ['has an empty line', 'ERR_TOKENIZER_LINE', 300, withLine(300, () => '')],
    ['has CR LF line ends', 'ERR_TOKENIZER_LINE', 1, latin1(demoRanks.replaceAll('\n', '\r\n'))],
    ['has one CR LF', 'ERR_TOKENIZER_LINE', 77, withLine(77, (x) => `${x}\r`)],
    ['has an empty token', 'ERR_TOKENIZER_BASE64', 5, withLine(5, () => ' 4')],
    ['has a character outside base64', 'ERR_TOKENIZER_BASE64', 260, withLine(260, (x) => `*${x.slice(1)}`)],
    ['has URL-safe base64', 'ERR_TOKENIZER_BASE64', 5, withLine(5, () => '-_8= 4')],
    ['has a token without padding', 'ERR_TOKENIZER_BASE64', 5, withLine(5, () => 'JQ 4')],
    ['has a token with short padding', 'ERR_TOKENIZER_BASE64', 5, withLine(5, () => 'JQ= 4')],
    ['has bits beyond the last byte', 'ERR_TOKENIZER_BASE64', 5, withLine(5, () => 'JR== 4')],
    ['has bits beyond the last of two bytes', 'ERR_TOKENIZER_BASE64', 5, withLine(5, () => 'JSV= 4')],
    ['has padding inside a token', 'ERR_TOKENIZER_BASE64', 5, withLine(5, () => 'JQ==JQ== 4')],
    ['has only padding', 'ERR_TOKENIZER_BASE64', 5, withLine(5, () => '==== 4')],
    ['has a padded first sextet', 'ERR_TOKENIZER_BASE64', 5, withLine(5, () => 'J=== 4')],
    ['has no rank', 'ERR_TOKENIZER_RANK', 5, withLine(5, () => 'JQ== ')],
    ['skips a rank', 'ERR_TOKENIZER_RANK', 5, withLine(5, () => 'JQ== 5')],
    ['repeats a rank', 'ERR_TOKENIZER_RANK', 5, withLine(5, () => 'JQ== 3')],
    ['has a negative rank', 'ERR_TOKENIZER_RANK', 5, withLine(5, () => 'JQ== -4')],
    ['has a fractional rank', 'ERR_TOKENIZER_RANK', 5, withLine(5, () => 'JQ== 4.0')],
    ['has a rank with a leading zero', 'ERR_TOKENIZER_RANK', 5, withLine(5, () => 'JQ== 04')],
    ['has a rank beyond 2^53', 'ERR_TOKENIZER_RANK', 5, withLine(5, () => 'JQ== 99999999999999999999')],
    ['has two spaces', 'ERR_TOKENIZER_RANK', 5, withLine(5, () => 'JQ==  4')],
    ['has a third column', 'ERR_TOKENIZER_RANK', 5, withLine(5, () => 'JQ== 4 x')],
    ['holds a token twice', 'ERR_TOKENIZER_DUPLICATE', 1000, withLine(1000, () => 'JQ== 999')]
  ])('that %s', (_, code, line, ranks) => {
    const error = errorOf(() => createTokenizer(ranks, emptyConfig))
    expect(error).toMatchObject({ name: 'TokenizerError', code, line, file: 'ranks' })
    expect(error.message).toMatch(new RegExp(`^ranks, line ${line}: expected `))
  })

  it('that lacks a one-byte token', () => {
    const error = errorOf(() =>
      createTokenizer(ranksFile(singleBytes().filter((x) => x[0] !== 0xad)), emptyConfig)
    )
    expect(error).toMatchObject({ code: 'ERR_TOKENIZER_BYTES', file: 'ranks' })
    expect(error.message).toContain('0xad')
  })

  it('that is not the released one although the checkpoint claims to be Kimi-K3', () => {
    const changed = Buffer.from(readRanks(officialDir))
    changed[changed.length - 9] = 0x2b
    const config = JSON.parse(readFileSync(`${officialDir}/tokenizer_config.json`, 'utf8')) as object
    for (const ranks of [latin1(demoRanks), changed, changed.subarray(0, -1)]) {
      const error = errorOf(() => createTokenizer(ranks, config, { official: true }))
      expect(error).toMatchObject({ code: 'ERR_TOKENIZER_NOT_OFFICIAL', file: 'ranks' })
    }
  })
})

describe('a configuration is refused', () => {
  const token = { content: '[X]', special: true }
  it.each<[string, string, object]>([
    ['is a list', 'ERR_TOKENIZER_CONFIG', []],
    ['names no tokens', 'ERR_TOKENIZER_CONFIG', {}],
    ['has a list of tokens', 'ERR_TOKENIZER_CONFIG', { added_tokens_decoder: [token] }],
    ['has a token that is text', 'ERR_TOKENIZER_CONFIG', { added_tokens_decoder: { 256: '[X]' } }],
    ['has no content', 'ERR_TOKENIZER_CONFIG', { added_tokens_decoder: { 256: { special: true } } }],
    [
      'has empty content',
      'ERR_TOKENIZER_CONFIG',
      { added_tokens_decoder: { 256: { ...token, content: '' } } }
    ],
    [
      'has a lone surrogate',
      'ERR_TOKENIZER_CONFIG',
      { added_tokens_decoder: { 256: { ...token, content: '\ud800' } } }
    ],
    ['has no flag', 'ERR_TOKENIZER_CONFIG', { added_tokens_decoder: { 256: { content: '[X]' } } }],
    [
      'has a flag that is 1',
      'ERR_TOKENIZER_CONFIG',
      { added_tokens_decoder: { 256: { ...token, special: 1 } } }
    ],
    ['has an id below the ranks', 'ERR_TOKENIZER_SPECIAL_ID', { added_tokens_decoder: { 255: token } }],
    ['has an id beyond the 256', 'ERR_TOKENIZER_SPECIAL_ID', { added_tokens_decoder: { 512: token } }],
    [
      'has an id that is no integer',
      'ERR_TOKENIZER_SPECIAL_ID',
      { added_tokens_decoder: { '256.0': token } }
    ],
    [
      'has an id with a leading zero',
      'ERR_TOKENIZER_SPECIAL_ID',
      { added_tokens_decoder: { '0256': token } }
    ],
    [
      'names two ids alike',
      'ERR_TOKENIZER_SPECIAL_NAME',
      { added_tokens_decoder: { 256: token, 300: token } }
    ],
    [
      'takes the name of a reserved id',
      'ERR_TOKENIZER_SPECIAL_NAME',
      { added_tokens_decoder: { 256: { ...token, content: '<|reserved_token_300|>' } } }
    ],
    [
      'has a name that begins with another one',
      'ERR_TOKENIZER_SPECIAL_NAME',
      { added_tokens_decoder: { 256: token, 257: { ...token, content: '[X]Y' } } }
    ]
  ])('that %s', (_, code, config) => {
    const error = errorOf(() => createTokenizer(ranksFile(singleBytes()), config))
    expect(error).toMatchObject({ name: 'TokenizerError', code, file: 'config' })
    expect(error.message).toMatch(/^config: expected /)
  })

  it('that belongs to another vocabulary', () => {
    const error = errorOf(() => createTokenizer(readRanks(officialDir), demoConfig))
    expect(error.code).toBe('ERR_TOKENIZER_SPECIAL_ID')
  })
})

describe('a checkpoint folder', () => {
  let dir: string
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'k3-tokenizer-'))
  })
  afterAll(() => rmSync(dir, { recursive: true }))

  it('is refused file by file, with the path, until both files are right', () => {
    const ranks = join(dir, 'tiktoken.model')
    const config = join(dir, 'tokenizer_config.json')
    const load = (): unknown => loadTokenizer(dir)
    expect(errorOf(load)).toMatchObject({
      code: 'ERR_TOKENIZER_FILE',
      file: ranks,
      cause: { code: 'ENOENT' }
    })
    copyFileSync(join(demoDir, 'tiktoken.model'), ranks)
    expect(errorOf(load)).toMatchObject({
      code: 'ERR_TOKENIZER_FILE',
      file: config,
      cause: { code: 'ENOENT' }
    })
    writeFileSync(config, '{"added_tokens_decoder": {')
    expect(errorOf(load)).toMatchObject({
      code: 'ERR_TOKENIZER_CONFIG',
      file: config,
      cause: expect.any(SyntaxError)
    })
    writeFileSync(config, latin1('{"added_tokens_decoder": "\xe9"}'))
    expect(errorOf(load)).toMatchObject({
      code: 'ERR_TOKENIZER_CONFIG',
      file: config,
      cause: expect.any(TypeError)
    })
    writeFileSync(config, 'null')
    expect(errorOf(load)).toMatchObject({ code: 'ERR_TOKENIZER_CONFIG', file: config })
    copyFileSync(join(demoDir, 'tokenizer_config.json'), config)
    expect(loadTokenizer(dir).vocabSize).toBe(1984)
    expect(errorOf(() => loadTokenizer(dir, { official: true }))).toMatchObject({
      code: 'ERR_TOKENIZER_NOT_OFFICIAL',
      file: ranks
    })
    writeFileSync(ranks, 'AA== 0')
    expect(errorOf(load)).toMatchObject({ code: 'ERR_TOKENIZER_LINE', file: ranks, line: 1 })
  })
})
