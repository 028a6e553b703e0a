import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { fixture, k3, k3Lines, k3Object } from './k3.js'

const official = ['--tokenizer', fixture('tokenizer')]
const source = readFileSync(fixture('tokenizer/vectors.json'), 'utf8')

interface Golden {
  readonly segments?: [string, 0 | 1][]
  readonly ids?: number[]
  readonly text?: string
  readonly error?: string
}
interface Conversation {
  readonly name: string
  readonly entry: 'template' | 'segments'
  readonly kwargs: Record<string, unknown>
  readonly r1: Golden
  readonly r2?: Golden
}
const { xtml, parse } = JSON.parse(source) as {
  xtml: Conversation[]
  parse: { name: string; start: string | null; ids: number[]; expect: object }[]
}

/** The value of a member as the file spells it: parsing it would lose what numbers look like. */
const memberText = (object: string, key: string): string => {
  const start = topLevel(object, `"${key}":`)
  return object.slice(start, valueEnd(object, start))
}

const topLevel = (object: string, key: string): number => {
  let at = object.indexOf('{') + 1
  for (;;) {
    while (/[\s,]/.test(object[at]!)) at++
    const nameEnd = valueEnd(object, at)
    const name = `${object.slice(at, nameEnd)}:`
    at = object.indexOf(':', nameEnd) + 1
    while (/\s/.test(object[at]!)) at++
    if (name === key) return at
    at = valueEnd(object, at)
  }
}

/** Where the JSON value that starts at `from` ends. */
const valueEnd = (text: string, from: number): number => {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    const character = text[at]!
    if (character === '"') {
      for (at++; text[at] !== '"'; at++) if (text[at] === '\\') at++
    } else if ('{['.includes(character)) depth++
    else if ('}]'.includes(character)) depth--
    else if (depth > 0 || !/[\s,:]/.test(character)) continue
    if (depth < 0) return at
    if (depth === 0 && /["}\]]/.test(character)) return at + 1
    if (depth === 0 && /[\s,:]/.test(character)) return at
  }
  return text.length
}

/** The conversations as they stand in the file, one text each. */
const conversationTexts = (): string[] => {
  const list = memberText(source, 'xtml')
  const texts: string[] = []
  for (let at = 1; at < list.length - 1; at++) {
    if (list[at] !== '{') continue
    const end = valueEnd(list, at)
    texts.push(list.slice(at, end))
    at = end
  }
  return texts
}

/** Only the `template` entry asks for an effort by default. */
const requestLine = (text: string, { entry, kwargs }: Conversation): string => {
  const options = memberText(text, 'kwargs')
  const silent = entry === 'segments' && !('thinking_effort' in kwargs)
  const comma = Object.keys(kwargs).length === 0 ? '' : ', '
  const given = silent ? options.replace('{', `{"thinking_effort": null${comma}`) : options
  const [messages, tools] = [memberText(text, 'messages'), memberText(text, 'tools')]
  return `{"messages": ${messages}, "tools": ${tools}, "options": ${given}}`.replaceAll(/\n\s*/g, ' ')
}

const texts = conversationTexts()
const lines = xtml.map((conversation, i) => requestLine(texts[i]!, conversation))

const expectGolden = (answer: Record<string, unknown>, golden: Golden, name: string): void => {
  if (golden.error !== undefined) {
    expect(answer, name).toEqual({
      error: { code: expect.stringMatching(/^ERR_XTML_/), message: expect.any(String) }
    })
  } else {
    const { segments, ids, text } = golden
    expect(answer, name).toEqual({ segments, ids, text })
  }
}

describe('k3 render with the official vocabulary', () => {
  test('gives segments, ids and text of every conversation in both revisions', async () => {
    expect(lines.length).toBe(95)
    const r1 = await k3Lines(['render', ...official, '--r1'], lines)
    const r2 = await k3Lines(['render', ...official], lines)
    xtml.forEach((conversation, i) => {
      const { name } = conversation
      expectGolden(r1[i]!, conversation.r1, `${name} R1`)
      // what the official file does with an unknown role in R2 is not known; it is refused
      const r2Golden = name === 'unknown_role_skipped' ? { error: 'refused' } : conversation.r2
      expectGolden(r2[i]!, r2Golden === undefined ? conversation.r1 : r2Golden, `${name} R2`)
    })
  })

  test('keeps numbers as they are written', async () => {
    const tool = '{"type":"function","function":{"name":"f","parameters":{"minimum":100.0,"maximum":1e+22}}}'
    const request = `{"messages": [{"role": "user", "content": "x"}], "tools": [${tool}]}`
    const { text } = await k3Object(['render', ...official, '--json'], request)
    expect(text).toContain('100.0')
    expect(text).toContain('1e+22')
  })
})

describe('k3 render', () => {
  const request = '{"messages": [{"role": "user", "content": "Hi"}]}'

  test('prints the object on one line with --json, and indented without', async () => {
    const short = await k3(['render', '--json'], { stdin: request })
    const long = await k3(['render', '-'], { stdin: request })
    expect(short.stdout.split('\n').length).toBe(2)
    expect(long.stdout.split('\n').length).toBeGreaterThan(10)
    expect(JSON.parse(long.stdout)).toEqual(JSON.parse(short.stdout))
    expect([short.code, long.code, short.stderr]).toEqual([0, 0, ''])
  })

  test('prints what is wrong with a request, and fails', async () => {
    const { code, stdout, stderr } = await k3(['render', '--json'], { stdin: '{"messages": [7]}' })
    expect([code, stderr]).toEqual([1, ''])
    expect(JSON.parse(stdout)).toEqual({
      error: { code: 'ERR_XTML_MESSAGE', message: expect.stringContaining('messages[0]') }
    })
    expect((await k3(['render'], { stdin: '{' })).stdout).toContain('ERR_XTML_JSON')
  })

  test('goes on after a bad line', async () => {
    const [bad, good] = await k3Lines(['render'], ['nonsense', request])
    expect(bad).toMatchObject({ error: { code: 'ERR_XTML_JSON' } })
    expect(good).toHaveProperty('segments')
  })

  test('refuses --json with --jsonl', async () => {
    expect((await k3(['render', '--json', '--jsonl'], { stdin: request })).code).toBe(2)
  })
})

describe('k3 parse', () => {
  test('gives the fields of every output', async () => {
    expect(parse.length).toBe(33)
    const answers = await k3Lines(
      ['parse', ...official],
      parse.map(({ start, ids }) => JSON.stringify({ start, ids }))
    )
    expect(answers).toEqual(parse.map(({ expect: fields }) => fields))
  })

  test('prints one object for a file, indented unless --json is given', async () => {
    const { start, ids, expect: fields } = parse[0]!
    const stdin = JSON.stringify({ start, ids })
    const long = await k3(['parse', ...official], { stdin })
    expect(long).toMatchObject({ code: 0, stderr: '' })
    expect(long.stdout.split('\n').length).toBeGreaterThan(2)
    expect(JSON.parse(long.stdout)).toEqual(fields)
    expect((await k3(['parse', ...official, '--json'], { stdin })).stdout.split('\n').length).toBe(2)
  })

  test.each([
    ['text that is not JSON', '{', 'ERR_USAGE'],
    ['a list', '[]', 'ERR_USAGE'],
    ['null', 'null', 'ERR_USAGE'],
    ['an unknown channel', '{"start": "tools", "ids": []}', 'ERR_USAGE'],
    ['no channel', '{"ids": []}', 'ERR_USAGE'],
    ['no ids', '{"start": null}', 'ERR_USAGE'],
    ['half an id', '{"start": null, "ids": [0.5]}', 'ERR_USAGE'],
    ['a member too many', '{"start": null, "ids": [], "text": ""}', 'ERR_USAGE'],
    ['an unknown id', '{"start": null, "ids": [99999999]}', 'ERR_TOKENIZER_ID']
  ])('refuses %s', async (_, stdin, code) => {
    const single = await k3(['parse', '--json'], { stdin })
    expect(single.code).toBe(1)
    expect(JSON.parse(single.stdout)).toMatchObject({ error: { code } })
    const [line] = await k3Lines(['parse'], [stdin])
    expect(line).toMatchObject({ error: { code } })
  })
})
