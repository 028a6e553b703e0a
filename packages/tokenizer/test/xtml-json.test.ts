import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { callBody } from '../src/xtml/arguments.js'
import { JsonNumber, MAX_DEPTH, parseJson } from '../src/xtml/json.js'
import { COMPACT, dumps, floatText, keySorted, numberText, SPACED } from '../src/xtml/python-json.js'
import { parseRequest, renderChat } from '../src/xtml.js'
import { codeOf } from './xtml-error-code.js'

interface TextFacts {
  readonly text: string
  readonly dumps: string | null
  readonly sorted: string | null
  readonly pairs: readonly [key: string, type: string, text: string][] | null
}

const facts = JSON.parse(
  readFileSync(new URL('../../../fixtures/tokenizer/python_repr.json', import.meta.url), 'utf8')
) as { readonly numbers: readonly [string, string][]; readonly texts: readonly TextFacts[] }

describe('JSON text', () => {
  it('prints each number lexeme as CPython does', () => {
    expect(facts.numbers.length).toBeGreaterThan(400)
    for (const [lexeme, text] of facts.numbers) {
      expect(numberText(lexeme), lexeme).toBe(text)
      expect(dumps(parseJson(lexeme, 'text'), SPACED), lexeme).toBe(text)
    }
  })

  it('is accepted, refused and printed as CPython does', () => {
    expect(facts.texts.length).toBe(260)
    for (const { text, dumps: printed, sorted } of facts.texts) {
      if (printed === null) {
        expect(
          codeOf(() => parseJson(text, 'text')),
          text
        ).toBe('ERR_XTML_JSON')
        continue
      }
      expect(dumps(parseJson(text, 'text'), SPACED), text).toBe(printed)
      expect(dumps(keySorted(parseJson(text, 'text')), COMPACT), text).toBe(sorted)
    }
  })

  it('gives the argument elements of the CPython scanner when it is a string of arguments', () => {
    for (const { text, pairs } of facts.texts) {
      const elements = pairs?.map(([key, type, value]) => ({ key, type, text: value }))
      expect(callBody(text, 'arguments', 'R2'), text).toEqual(text === '' ? [] : (elements ?? text))
    }
  })

  it('prints a double that reads back as the same double, always with a fraction or an exponent', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = floatText(value)
        expect(Object.is(Number(text), value)).toBe(true)
        expect(text).toMatch(/^-?\d+(\.\d+)?(e[+-]\d{2,3})?$/)
        expect(text).toMatch(/[.e]/)
      })
    )
  })

  it('keeps a lexeme of 10,000 digits, key order and the last of repeated values', () => {
    const digits = '9'.repeat(10_000)
    const text = `{"10": ${digits}, "2": 1.50, "b": 1, "10": -0.0}`
    expect(dumps(parseJson(text, 'text'), SPACED)).toBe('{"10": -0.0, "2": 1.5, "b": 1}')
    expect(dumps(parseJson(digits, 'text'), SPACED)).toBe(digits)
  })

  it('escapes as Python: controls in lower-case hexadecimal, slash, DEL, U+2028 and lone surrogates raw', () => {
    const text = '"\\\b\f\n\r\t\u0000\u001f/\u007f\u2028é😀\ud800'
    expect(dumps(text, COMPACT)).toBe('"\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f/\u007f\u2028é😀\ud800"')
  })

  it('sorts keys by code point where UTF-16 order differs', () => {
    const keys = ['\u{1f600}', '\uffee', 'b', 'a', 'é', '', 'ab']
    const value = new Map(keys.map((key) => [key, null]))
    expect([...(keySorted(value) as Map<string, null>).keys()]).toEqual([
      '',
      'a',
      'ab',
      'b',
      'é',
      '\uffee',
      '\u{1f600}'
    ])
  })

  it('names the offset of the first character that does not fit', () => {
    expect(() => parseJson('{"a": 1,}', 'text')).toThrow(expect.objectContaining({ path: 'text, offset 8' }))
    expect(() => parseJson('[1', 'text')).toThrow('text, offset 2: expected "," or "]", found the end')
  })

  it('is refused by name beyond the depth limit, and read up to it', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
    expect(dumps(parseJson(nested(MAX_DEPTH), 'text'), COMPACT)).toBe(nested(MAX_DEPTH))
    expect(codeOf(() => parseJson(nested(MAX_DEPTH + 2), 'text'))).toBe('ERR_XTML_JSON_DEPTH')
    expect(codeOf(() => parseJson('['.repeat(1_000_000), 'text'))).toBe('ERR_XTML_JSON_DEPTH')
  })
})

describe('a request text', () => {
  it('keeps its lexemes down to the rendered text', () => {
    const tool = '{"type":"function","function":{"name":"f","n":[1,2.0,-0.0,1E400,12345678901234567890]}}'
    const segments = renderChat(parseRequest(`{"messages": [], "tools": [${tool}]}`))
    expect(segments.some(([text]) => text.includes('"n":[1,2.0,-0.0,Infinity,12345678901234567890]'))).toBe(
      true
    )
  })

  it('is refused by name when it is no request', () => {
    expect(codeOf(() => parseRequest('{"messages": [}'))).toBe('ERR_XTML_JSON')
    expect(codeOf(() => parseRequest('[]'))).toBe('ERR_XTML_REQUEST')
    expect(codeOf(() => parseRequest('{}'))).toBe('ERR_XTML_REQUEST')
    expect(codeOf(() => parseRequest('{"messages": {}}'))).toBe('ERR_XTML_REQUEST')
    expect(codeOf(() => parseRequest('{"messages": [], "temperature": 1}'))).toBe('ERR_XTML_REQUEST')
    expect(codeOf(() => parseRequest('{"messages": [], "tools": {}}'))).toBe('ERR_XTML_TOOLS')
    expect(codeOf(() => parseRequest('{"messages": [], "options": []}'))).toBe('ERR_XTML_OPTION')
    expect(codeOf(() => parseRequest(`{"messages": ${'['.repeat(5000)}`))).toBe('ERR_XTML_JSON_DEPTH')
  })
})

describe('plain values', () => {
  const rendered = (value: unknown): string => {
    const call = { function: { name: 'f', arguments: { x: value } } }
    const segments = renderChat({ messages: [{ role: 'assistant', tool_calls: [call] }] }, 'R1')
    const texts = segments.map(([text]) => text)
    const from = texts.indexOf('argument')
    return from < 0 ? '' : texts.slice(from, texts.indexOf('argument', from + 1) - 1).join('')
  }

  it('print numbers as Python prints what they stand for', () => {
    const element = (type: string, text: string) => `argument key="x" type="${type}"<|sep|>${text}`
    expect(rendered(1)).toBe(element('number', '1'))
    expect(rendered(2.0)).toBe(element('number', '2'))
    expect(rendered(-0)).toBe(element('number', '-0.0'))
    expect(rendered(1.5)).toBe(element('number', '1.5'))
    expect(rendered(1e22)).toBe(element('number', '1e+22'))
    expect(rendered(2 ** 53)).toBe(element('number', '9007199254740992.0'))
    expect(rendered(2n ** 64n)).toBe(element('number', '18446744073709551616'))
    expect(rendered(Number.NaN)).toBe(element('number', 'NaN'))
    expect(rendered(new JsonNumber('1e2'))).toBe(element('number', '100.0'))
  })

  it('keep the order of a Map and leave out undefined properties', () => {
    const element = (text: string) => `argument key="x" type="object"<|sep|>${text}`
    const map = new Map<string, unknown>([
      ['10', 1],
      ['2', undefined],
      ['b', 3]
    ])
    expect(rendered(map)).toBe(element('{"10": 1, "b": 3}'))
    expect(rendered({ b: 1, 10: 2, gone: undefined })).toBe(element('{"10": 2, "b": 1}'))
    expect(rendered(undefined)).toBe('')
  })

  it('are refused by name when JSON cannot hold them', () => {
    const cycle: unknown[] = []
    cycle.push(cycle)
    expect(codeOf(() => rendered(new Date(0)))).toBe('ERR_XTML_VALUE')
    expect(codeOf(() => rendered([undefined]))).toBe('ERR_XTML_VALUE')
    expect(codeOf(() => rendered(() => 1))).toBe('ERR_XTML_VALUE')
    expect(codeOf(() => rendered(Symbol('s')))).toBe('ERR_XTML_VALUE')
    expect(codeOf(() => rendered(new Map([[1, 2]])))).toBe('ERR_XTML_VALUE')
    expect(codeOf(() => rendered(cycle))).toBe('ERR_XTML_JSON_DEPTH')
  })
})
