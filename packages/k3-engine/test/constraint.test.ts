import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { loadTokenizer } from '@k3/tokenizer'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { compileSchema } from '../src/constraint/schema.js'
import { GrammarMasks, ValueReader } from '../src/constraint/value-reader.js'
import { Vocabulary } from '../src/constraint/vocabulary.js'
import { rootSchema, seeded } from './random-schema.js'
import { idsOf, maskOf, randomWalk } from './random-walk.js'

const ajv = new Ajv2020({ strict: false, ownProperties: true })
const demo = loadTokenizer(modelDir)
const small = new Vocabulary(demo, demo.vocabSize)
const fixtures = path.join(import.meta.dirname, '../../../fixtures/tokenizer')

/** Whether the texts of these tokens, in order, are one value of the schema. */
const accepts = (schema: unknown, text: string): boolean => {
  const reader = new ValueReader(compileSchema(schema), new GrammarMasks(small))
  return demo.encode(text).every((id) => reader.accept(id)) && reader.accepts
}

describe('500 random schemas', { timeout: 120_000 }, () => {
  it('accept for ajv whatever tokens the masks of the demo vocabulary allow', () => {
    for (let seed = 0; seed < 500; seed++) {
      const random = seeded(seed)
      const schema = rootSchema(random)
      const ids = randomWalk(compileSchema(schema), small, random, { free: 60 })
      const value: unknown = JSON.parse(demo.decode(ids))
      const valid = ajv.validate(schema, value)
      if (!valid)
        throw new Error(`${seed}: ${demo.decode(ids)} ${ajv.errorsText()} ${JSON.stringify(schema)}`)
    }
  })

  it('accept for ajv whatever tokens the masks of the released vocabulary allow', () => {
    const tokenizer = loadTokenizer(fixtures, { official: true })
    const vocabulary = new Vocabulary(tokenizer, tokenizer.vocabSize)
    for (let seed = 500; seed < 540; seed++) {
      const random = seeded(seed)
      const schema = rootSchema(random)
      const ids = randomWalk(compileSchema(schema), vocabulary, random, { free: 12 })
      expect(ajv.validate(schema, JSON.parse(tokenizer.decode(ids))), JSON.stringify(schema)).toBe(true)
    }
  })

  it('have masks with exactly the tokens that can follow', () => {
    for (let seed = 0; seed < 60; seed++) {
      const random = seeded(seed)
      const schema = rootSchema(random)
      const node = compileSchema(schema)
      const walked: number[] = []
      randomWalk(node, small, random, {
        free: 12,
        visit: (reader, mask) => {
          if (walked.push(0) > 14) return
          const allowed = new Set(idsOf(mask))
          const wrong: number[] = []
          for (let id = 0; id < demo.vocabSize; id++) {
            const able = reader.canAccept(id)
            if (able !== allowed.has(id)) wrong.push(id)
          }
          expect(wrong, `${seed} after ${walked.length}`).toEqual([])
        }
      })
    }
  })

  it('accept the same text however it is cut into tokens', () => {
    for (let seed = 0; seed < 200; seed++) {
      const random = seeded(seed)
      const node = compileSchema(rootSchema(random))
      const text = demo.decode(randomWalk(node, small, random, { free: 40 }))
      const reader = new ValueReader(node, new GrammarMasks(small))
      for (const id of demo.encode(text)) expect(reader.accept(id)).toBe(true)
      expect(reader.accepts).toBe(true)
    }
  })
})

describe('a compiled schema', () => {
  const cases: [string, unknown, string[], string[]][] = [
    [
      'any JSON',
      {},
      ['1', '"a"', '[]', '{"a": [null, true]}', '-0.5'],
      ['', 'nul', '01', '1.', '[1,]', '{"a"}']
    ],
    ['one space and no more', { type: 'array' }, ['[1,2]', '[1, 2]'], ['[1,  2]', '[ 1]', '[1 ]', '[1]\n']],
    [
      'integers',
      { type: 'integer' },
      ['0', '-7', '999999999999999'],
      ['1.0', '-0', '1e3', '1000000000000000']
    ],
    [
      'ranges',
      { type: 'integer', minimum: -12, exclusiveMaximum: 305 },
      ['-12', '304', '0'],
      ['-13', '305', '3044']
    ],
    [
      'decimal ranges',
      { type: 'number', minimum: 0.1, maximum: 2.5 },
      ['0.1', '0.10', '2.5', '2.50', '1', '2.499999999999999'],
      ['0.09', '2.51', '0', '3', '2.500000000000001', '-1']
    ],
    [
      'open ranges',
      { type: 'number', exclusiveMinimum: 1 },
      ['1.000000000000001', '2', '17.25'],
      ['1', '1.0', '0.9']
    ],
    [
      'tiny ranges',
      { type: 'number', minimum: -1e-7, maximum: 0 },
      ['0', '-0.0000001'],
      ['-0.0000002', '-0', '1']
    ],
    [
      'lengths',
      { type: 'string', minLength: 2, maxLength: 3 },
      ['"ab"', '"é😀\\n"'],
      ['"a"', '"abcd"', '"\\u00e9"']
    ],
    ['escapes', { type: 'string' }, ['"\\u00e9\\/\\\\"', '""'], ['"\\ud800"', '"\\x"', '"\t"', '"a']],
    [
      'constants',
      { enum: ['red', 3, null, { a: [1] }] },
      ['"red"', '3', 'null', '{"a": [1]}'],
      ['"re"', '4', '{}']
    ],
    ['constants of a type', { type: 'string', enum: ['a', 1] }, ['"a"'], ['1']],
    [
      'declared keys in any order',
      { type: 'object', properties: { a: { type: 'null' }, b: { type: 'null' } }, required: ['a'] },
      ['{"a":null}', '{"b": null, "a": null}'],
      ['{}', '{"b":null}', '{"a":null,"a":null}', '{"c":1}', '{"a":null,}']
    ],
    [
      'other keys',
      { type: 'object', properties: { ab: { type: 'null' } }, additionalProperties: { type: 'boolean' } },
      ['{"ab":null,"abc":true}', '{"a": false, "": true}'],
      ['{"ab":true}', '{"abc":null}', '{"\\u0061b":true}']
    ],
    [
      'a forbidden key',
      { properties: { a: false }, additionalProperties: true },
      ['{"b":1}', '{}'],
      ['{"a":1}', '3']
    ],
    [
      'tuples',
      { type: 'array', prefixItems: [{ const: 1 }, { type: 'null' }], items: false },
      ['[]', '[1]', '[1,null]'],
      ['[2]', '[1,null,1]']
    ],
    ['forbidden places', { type: 'array', prefixItems: [true, false] }, ['[]', '[1]'], ['[1,2]']],
    ['types', { type: ['integer', 'null'], minimum: 5 }, ['5', 'null'], ['4', '"a"']],
    ['one schema of all', { allOf: [{ type: 'null' }] }, ['null'], ['1']],
    ['either', { anyOf: [{ const: 'a' }, false, { type: 'integer' }] }, ['"a"', '12'], ['"b"', '1.5']],
    [
      'references',
      { $ref: '#/$defs/a~1b', $defs: { 'a/b': { type: 'array', items: { $ref: '#' } } } },
      ['[]', '[[],[[]]]'],
      ['[1]', '{}']
    ]
  ]

  it.each(cases)('accepts %s', (_, schema, good, bad) => {
    for (const text of good) expect(accepts(schema, text), text).toBe(true)
    for (const text of bad) expect(accepts(schema, text), text).toBe(false)
    for (const text of good) expect(ajv.validate(schema as object, JSON.parse(text)), text).toBe(true)
  })

  it('keeps numbers of a range valid at the limits of doubles', () => {
    for (const [minimum, maximum] of [
      [0.1 + 0.2, 0.5],
      [1 / 3, 2 / 3],
      [-(2 ** 53) + 1, -(2 ** 53) + 3],
      [123456789.123, 123456789.124]
    ]) {
      const schema = { type: 'number', minimum, exclusiveMaximum: maximum }
      for (let seed = 0; seed < 40; seed++) {
        const ids = randomWalk(compileSchema(schema), small, seeded(seed), { free: 30 })
        expect(ajv.validate(schema, JSON.parse(demo.decode(ids))), demo.decode(ids)).toBe(true)
      }
    }
  })

  it('allows no special token inside a value', () => {
    const reader = new ValueReader(compileSchema({ type: 'string' }), new GrammarMasks(small))
    reader.accept(demo.encode('"')[0]!)
    const allowed = new Set(idsOf(maskOf(reader, small.words)))
    for (const id of demo.specials.values()) {
      expect(allowed.has(id)).toBe(false)
      expect(reader.accept(id)).toBe(false)
    }
  })
})

describe('a schema', () => {
  const refused: [string, unknown][] = [
    ['#/pattern', { type: 'string', pattern: '^a' }],
    ['#/properties/when/format', { properties: { when: { type: 'string', format: 'date' } } }],
    ['#/items/multipleOf', { type: 'array', items: { type: 'integer', multipleOf: 3 } }],
    ['#/uniqueItems', { type: 'array', uniqueItems: true }],
    ['#/not', { not: {} }],
    ['#/if', { type: 'string', if: {} }],
    ['#/patternProperties', { type: 'object', patternProperties: {} }],
    ['#/minProperties', { type: 'object', minProperties: 1 }],
    ['#/x-my~1extension', { type: 'null', 'x-my/extension': 1 }],
    ['#/allOf', { allOf: [{}, {}] }],
    ['#/oneOf', { oneOf: [{ type: 'integer' }, { type: 'number' }] }],
    ['#/oneOf', { oneOf: [{ type: 'object' }, { type: 'object' }] }],
    ['#/anyOf', { anyOf: [] }],
    ['#/anyOf', { anyOf: [false] }],
    ['#/type', { anyOf: [{}], type: 'object' }],
    ['#/minLength', { const: 'a', minLength: 1 }],
    ['#/minLength', { type: 'integer', minLength: 1 }],
    ['#/minLength', { type: 'string', minLength: 3, maxLength: 2 }],
    ['#/maxLength', { type: 'string', maxLength: -1 }],
    ['#/minimum', { type: 'number', minimum: 2 ** 53 }],
    ['#/maximum', { type: 'number', maximum: '3' }],
    ['#', { type: 'integer', minimum: 3, maximum: 2 }],
    ['#', { type: 'integer', exclusiveMinimum: 3, exclusiveMaximum: 4 }],
    ['#/minItems', { type: 'array', prefixItems: [{}], items: false, minItems: 2 }],
    ['#/prefixItems', { type: 'array', prefixItems: {} }],
    ['#/required', { type: 'object', required: ['a'], additionalProperties: false }],
    ['#/required', { type: 'object', required: 'a' }],
    ['#/properties', { type: 'object', properties: [] }],
    ['#/enum', { enum: [] }],
    ['#/enum', { enum: ['a'], type: 'integer' }],
    ['#/type', { type: 'text' }],
    ['#/type', { type: [] }],
    ['#/$ref', { $ref: 'https://example.invalid/schema' }],
    ['#/$ref', { $ref: '#/$defs/missing' }],
    ['#/$ref', { $ref: '#/$defs/nothing', $defs: { nothing: false } }],
    ['#', { type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] }],
    ['#', false],
    ['#', 'string'],
    ['#/const', { const: Number.NaN }],
    ['#/default', { default: () => 1 }]
  ]

  it.each(refused)('is refused with the pointer %s: %j', (field, given) => {
    expect(() => compileSchema(given)).toThrow(expect.objectContaining({ code: 'ERR_K3_SCHEMA', field }))
  })

  it('is refused when it is nested too deep', () => {
    let nested: object = {}
    for (let i = 0; i < 300; i++) nested = { items: nested }
    expect(() => compileSchema(nested)).toThrow(expect.objectContaining({ code: 'ERR_K3_SCHEMA' }))
  })

  it('may come as maps with numbers as written', () => {
    const given = new Map<string, unknown>([
      ['type', 'object'],
      ['properties', new Map([['10', new Map([['const', 1]])]])]
    ])
    const reader = new ValueReader(compileSchema(given), new GrammarMasks(small))
    for (const id of demo.encode('{"10": 1}')) expect(reader.accept(id)).toBe(true)
  })
})
