import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ERROR_CODES, quote, SafetensorsError } from '../src/errors.ts'

const here = new URL('./', import.meta.url)
const readTests = () =>
  readdirSync(here)
    .filter((name) => name.endsWith('.ts') && !name.startsWith('error-codes'))
    .map((name) => readFileSync(new URL(name, here), 'utf8'))
    .join('\n')

test('every code is expected by a test', () => {
  const tests = readTests()
  const short = (code: string) => code.replace('ERR_SAFETENSORS_', '')
  const absent = ERROR_CODES.filter(
    (code) => !new RegExp(`\\b(ERR_SAFETENSORS_)?${short(code)}\\b`).test(tests)
  )
  expect(absent).toEqual([])
})

test('every code stands in the errors table of the README', () => {
  const readme = readFileSync(new URL('../README.md', here), 'utf8')
  expect(ERROR_CODES.filter((code) => !readme.includes(code.replace('ERR_SAFETENSORS_', '')))).toEqual([])
})

test('an error carries code, place and cause', () => {
  const cause = new Error('why')
  const error = new SafetensorsError('ERR_SAFETENSORS_GAP', 'what', {
    file: 'f',
    tensor: 't\n',
    offset: 7,
    cause
  })
  expect(error).toBeInstanceOf(Error)
  expect(error).toMatchObject({ name: 'SafetensorsError', file: 'f', tensor: 't\n', offset: 7, cause })
  expect(error.message).toBe('what (file "f", tensor "t\\n", byte 7)')
  expect(new SafetensorsError('ERR_SAFETENSORS_GAP', 'what').message).toBe('what')
  expect('cause' in new SafetensorsError('ERR_SAFETENSORS_GAP', 'what')).toBe(false)
})

test('names in messages are escaped and cut', () => {
  expect(quote('a"\u0007')).toBe('"a\\"\\u0007"')
  expect(quote('\u009b2J\u202e')).toBe('"\\u009b2J\\u202e"')
  expect(quote('n'.repeat(1000)).length).toBeLessThan(200)
})
