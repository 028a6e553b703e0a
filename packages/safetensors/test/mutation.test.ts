import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SafetensorsError } from '../src/errors.ts'
import { parseHeader } from '../src/header.ts'
import { parseIndex } from '../src/index-json.ts'
import { entry, fileOf } from './cases.ts'

const header = Buffer.from(
  fileOf(
    `{"__metadata__":{"format":"pt","k\\n":"\\u00e9"},"a.w":${entry('F32', [2, 3], 0, 24)},` +
      `"hé😀":${entry('F4', [4], 24, 26)}, "z" : {"x":[1.5e3,{"y":null}],"dtype":"I64","shape":[],"data_offsets":[26,34]}}   `,
    34
  )
)
const index = Buffer.from(
  '{"metadata":{"total_size":34},"weight_map":{"a":"x-1","b":"x-2","\\u0063":"x-1"}}\n'
)

const WORDS = [
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '-',
  '.',
  'e',
  '0',
  '9',
  '18446744073709551616',
  'null',
  '\\u',
  '\\ud800',
  '\0',
  'ÿ',
  '[[[[',
  '{"a":',
  '"shape":',
  '"data_offsets":[0,0]'
]

/** Cuts, overwrites, repeats and inserts: what a broken disk or an enemy does to a text. */
const edit = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  drop: fc.nat({ max: 6 }),
  put: fc.oneof(
    fc.constantFrom(...WORDS).map((word) => Buffer.from(word)),
    fc.uint8Array({ maxLength: 4 })
  )
})

function mutate(bytes: Buffer, edits: readonly { at: number; drop: number; put: Uint8Array }[]): Buffer {
  return edits.reduce((text, { at, drop, put }) => {
    const from = Math.floor(at * text.length)
    return Buffer.concat([text.subarray(0, from), put, text.subarray(from + drop)])
  }, bytes)
}

const edits = fc.array(edit, { minLength: 1, maxLength: 4 })

function survives(action: () => unknown): void {
  try {
    action()
  } catch (error) {
    expect(error).toBeInstanceOf(SafetensorsError)
  }
}

test('no mutation of a file ends in anything but a table or a SafetensorsError', () => {
  fc.assert(
    fc.property(edits, (list) => survives(() => [...parseHeader(mutate(header, list))])),
    { numRuns: 5000, seed: 1 }
  )
})

test('no mutation of the text behind a right length does either', () => {
  fc.assert(
    fc.property(edits, fc.boolean(), (list, implied) => {
      const file = fileOf(mutate(header.subarray(8, header.length - 34), list), 34)
      survives(() => [...parseHeader(file, implied ? { fileBytes: 'implied' } : {})])
    }),
    { numRuns: 10_000, seed: 2 }
  )
})

test('what is accepted covers the data once and is JSON with the same names', () => {
  let accepted = 0
  fc.assert(
    fc.property(edit, (one) => {
      const text = mutate(header.subarray(8, header.length - 34), [one])
      let table: ReturnType<typeof parseHeader>
      try {
        table = parseHeader(fileOf(text, 34))
      } catch {
        return
      }
      accepted++
      expect([...table].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBe(34)
      const names = Object.keys(JSON.parse(text.toString('utf8'))).filter((name) => name !== '__metadata__')
      expect([...table.names()].sort()).toEqual(names.sort())
    }),
    { numRuns: 5000, seed: 3 }
  )
  expect(accepted).toBeGreaterThan(50)
})

test('no mutation of an index ends in anything but an index or a SafetensorsError', () => {
  fc.assert(
    fc.property(edits, (list) => survives(() => parseIndex(mutate(index, list), 'x'))),
    { numRuns: 5000, seed: 4 }
  )
})

test('random bytes are no header', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => survives(() => parseHeader(bytes))),
    { numRuns: 2000, seed: 5 }
  )
})
