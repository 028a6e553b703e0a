import { describe, expect, test } from 'vitest'
import { DTYPE_NAMES } from '../src/dtypes.ts'
import { parseHeader } from '../src/header.ts'
import { codeOf, entry, errorOf, fileOf } from './cases.ts'

const F32 = entry('F32', [1], 0, 4)
const parse = (json: string, data = 4) => parseHeader(fileOf(json, data), { file: 'model.safetensors' })
const codeFor = (json: string, data = 4) => codeOf(() => parse(json, data))
const withShape = (shape: string, offsets = '[0,4]', dtype = '"F32"') =>
  `{"a":{"dtype":${dtype},"shape":${shape},"data_offsets":${offsets}}}`

const BITS: Record<string, number> = {
  BOOL: 8,
  F4: 4,
  F6_E2M3: 6,
  F6_E3M2: 6,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  F8_E4M3FNUZ: 8,
  F8_E5M2FNUZ: 8,
  I16: 16,
  U16: 16,
  F16: 16,
  BF16: 16,
  I32: 32,
  U32: 32,
  F32: 32,
  C64: 64,
  F64: 64,
  I64: 64,
  U64: 64
}

const typeError = expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })
const rangeError = expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' })

describe('dtypes', () => {
  test('the table has every dtype of the format', () => {
    expect([...DTYPE_NAMES].sort()).toEqual(Object.keys(BITS).sort())
  })

  test.each(DTYPE_NAMES.map((dtype) => [dtype, BITS[dtype]!] as const))(
    '%s takes %i bits an element',
    async (dtype, bits) => {
      for (const count of [0, 1, 2, 3, 4, 7, 8, 63, 64, 65]) {
        const bytes = (count * bits) / 8
        const header = (end: number) => `{"a":${entry(dtype, [count], 0, end)}}`
        if (!Number.isInteger(bytes)) {
          expect(await codeFor(header(Math.ceil(bytes)), Math.ceil(bytes))).toBe('ERR_SAFETENSORS_SUB_BYTE')
          continue
        }
        const info = parse(header(bytes), bytes).get('a')
        expect([info.dtype, info.byteLength]).toEqual([dtype, bytes])
        expect(await codeFor(header(bytes + 1), bytes + 1)).toBe('ERR_SAFETENSORS_SIZE_MISMATCH')
      }
    }
  )

  test.each(['"F4_X"', '"f32"', '"F32 "', '""', '4', 'null', '["F32"]', '{}'])(
    'refuses dtype %s',
    async (dtype) => {
      expect(await codeFor(withShape('[1]', '[0,4]', dtype))).toBe('ERR_SAFETENSORS_DTYPE_UNKNOWN')
    }
  )

  test('an unknown dtype is refused before its absurd offsets matter', async () => {
    const header = withShape('[8]', '[9007199254740983,9007199254740991]', '"F4_X"')
    expect(await codeFor(header)).toBe('ERR_SAFETENSORS_DTYPE_UNKNOWN')
  })
})

describe('table', () => {
  test('gives name, dtype, shape and both kinds of position', () => {
    const json = `{"__metadata__":{"format":"pt"},"w":${entry('BF16', [2, 3], 4, 16)},"b":${F32}}`
    const table = parse(json, 16)
    const dataOffset = 8 + json.length
    expect(table.size).toBe(2)
    expect(table.names()).toEqual(['w', 'b'])
    expect([table.dataOffset, table.dataBytes, table.fileBytes]).toEqual([dataOffset, 16, dataOffset + 16])
    expect([...table.metadata!]).toEqual([['format', 'pt']])
    expect(table.get('w')).toEqual({
      name: 'w',
      dtype: 'BF16',
      shape: [2, 3],
      begin: 4,
      end: 16,
      fileOffset: dataOffset + 4,
      byteLength: 12
    })
    expect([...table].map(({ name }) => name)).toEqual(['w', 'b'])
    expect([table.has('w'), table.has('W')]).toEqual([true, false])
  })

  test('keeps metadata apart: absent, empty, escaped key', async () => {
    expect(parse(`{"a":${F32}}`).metadata).toBeNull()
    expect(parse(`{"__metadata__":{},"a":${F32}}`).metadata!.size).toBe(0)
    expect(parse(`{"\\u005f_metadata__":{"k":"v"},"a":${F32}}`).metadata!.get('k')).toBe('v')
    for (const value of ['null', '[]', '"x"', '7']) {
      expect(await codeFor(`{"__metadata__":${value},"a":${F32}}`)).toBe('ERR_SAFETENSORS_METADATA_TYPE')
    }
    for (const value of ['0', 'null', '["x"]', '{"b":"c"}']) {
      expect(await codeFor(`{"__metadata__":{"step":${value}},"a":${F32}}`)).toBe(
        'ERR_SAFETENSORS_METADATA_VALUE'
      )
    }
  })

  test('names of Object.prototype are names like any other', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '']
    const members = names.map((name, i) => `${JSON.stringify(name)}:${entry('F32', [1], 4 * i, 4 * i + 4)}`)
    const table = parse(`{${members.join()}}`, 4 * names.length)
    expect(table.names()).toEqual(names)
    expect(table.get('constructor').begin).toBe(4)
    expect(parse('{}', 0).has('constructor')).toBe(false)
  })

  test('refuses a name it does not have', async () => {
    const error = await errorOf(() => parse(`{"a":${F32}}`).get('toString'))
    expect([error.code, error.tensor]).toEqual(['ERR_SAFETENSORS_TENSOR_NOT_FOUND', 'toString'])
  })

  test('a header of odd length leaves the data unaligned and is valid', () => {
    const json = `{"a":${F32}}${' '.repeat(42_854)}`
    for (const pad of [0, 1, 2, 3]) {
      const table = parse(json + ' '.repeat(pad))
      expect(table.get('a').fileOffset).toBe(8 + json.length + pad)
    }
  })
})

describe('JSON', () => {
  test.each([
    ['{a:1}', 'JSON_SYNTAX'],
    ["{'a':1}", 'JSON_SYNTAX'],
    [`{"a":${F32},}`, 'JSON_SYNTAX'],
    [`{,"a":${F32}}`, 'JSON_SYNTAX'],
    [`{"a" ${F32}}`, 'JSON_SYNTAX'],
    [`{"a":${F32} "b":${F32}}`, 'JSON_SYNTAX'],
    [withShape('[1,]'), 'JSON_SYNTAX'],
    [withShape('[01]'), 'JSON_SYNTAX'],
    [withShape('[+1]'), 'JSON_SYNTAX'],
    [withShape('[1-2]'), 'JSON_SYNTAX'],
    [withShape('[1.]'), 'JSON_SYNTAX'],
    [withShape('[.5]'), 'JSON_SYNTAX'],
    [withShape('[1e]'), 'JSON_SYNTAX'],
    [withShape('[NaN]'), 'JSON_SYNTAX'],
    [withShape('[0x1]'), 'JSON_SYNTAX'],
    [withShape('[trux]'), 'JSON_SYNTAX'],
    ['{"a":{"x":truex}}', 'JSON_SYNTAX'],
    ['{"a":/**/1}', 'JSON_SYNTAX'],
    ['{', 'JSON_TRUNCATED'],
    ['{"a', 'JSON_TRUNCATED'],
    ['{"a\\', 'JSON_TRUNCATED'],
    ['{"a":', 'JSON_TRUNCATED'],
    ['{"a":{"dtype":"F32","shape":[1', 'JSON_TRUNCATED'],
    ['{"a":-', 'JSON_TRUNCATED'],
    [`{"a\\x":${F32}}`, 'JSON_STRING'],
    [`{"a\\u12g4":${F32}}`, 'JSON_STRING'],
    [`{"a\\ud83d":${F32}}`, 'JSON_STRING'],
    [`{"\\ude00\\ud83d":${F32}}`, 'JSON_STRING'],
    [`{"a\n":${F32}}`, 'JSON_STRING'],
    [`{"a\\\n":${F32}}`, 'JSON_STRING'],
    [`{"a":${F32}}\n`, 'HEADER_TRAILING'],
    [`{"a":${F32}}}`, 'HEADER_TRAILING'],
    [`\t{"a":${F32}}`, 'HEADER_START']
  ])('refuses %j as %s', async (json, code) => {
    expect(await codeFor(json)).toBe(`ERR_SAFETENSORS_${code}`)
  })

  test.each([
    [[0xff], 0],
    [[0x41, 0xc1, 0x81], 1],
    [[0xed, 0xa0, 0x80], 0],
    [[0xc3, 0xa9, 0xf5, 0x80, 0x80, 0x80], 2],
    [[0xf0, 0x9f, 0x98, 0x80, 0xe2, 0x82], 4],
    [[0x80], 0],
    [[0xc0, 0x80], 0]
  ])('refuses name bytes %j as UTF-8 and points at the byte', async (name, at) => {
    const header = Buffer.concat([Buffer.from('{"'), Buffer.from(name), Buffer.from(`":${F32}}`)])
    const error = await errorOf(() => parseHeader(fileOf(header, 4)))
    expect([error.code, error.offset]).toEqual(['ERR_SAFETENSORS_UTF8', 8 + 2 + at])
  })

  test.each(['aa', 'bab', 'acbc', 'cabdb', 'abcabd', 'cbaa'])(
    'finds the repeated name among members %s',
    async (letters) => {
      const names = [...letters]
      const members = names.map((name, i) => `"${name}":${entry('U8', [1], i, i + 1)}`)
      const error = await errorOf(() => parse(`{${members.join()}}`, names.length))
      const second = names.findIndex((name, i) => names.indexOf(name) < i)
      expect([error.code, error.tensor]).toEqual(['ERR_SAFETENSORS_DUPLICATE_TENSOR', names[second]])
    }
  )

  test('a name in raw UTF-8 and the same name in escapes are one name', async () => {
    expect(parse(`{"hé😀":${F32}}`).names()).toEqual(['hé😀'])
    const twice = `{"é":${F32},"\\u00e9":${F32}}`
    expect(await codeFor(twice)).toBe('ERR_SAFETENSORS_DUPLICATE_TENSOR')
  })

  test.each([
    [`{"__metadata__":{},"a":${F32},"__metadata__":{}}`],
    [`{"__metadata__":{"k":"1","k":"1"},"a":${F32}}`],
    ['{"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}}'],
    ['{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"data_offsets":[0,4]}}'],
    ['{"a":{"dtype":"F32","d\\u0074ype":"F32","shape":[1],"data_offsets":[0,4]}}'],
    ['{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1,"x":1}}'],
    ['{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":{"y":[{"z":1,"z":2}]}}}']
  ])('refuses a repeated member in %s', async (json) => {
    expect(await codeFor(json)).toBe('ERR_SAFETENSORS_DUPLICATE_MEMBER')
  })

  test('members it does not know are checked and left out', () => {
    const extra = '{"k":[1.5e-3,-0,true,false,null,"\\n\\u00e9",{},[]],"é":0}'
    expect(parse(`{"a":{"x":${extra},"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`).get('a').end).toBe(4)
  })

  test('nesting ends at 128 levels without touching the stack', async () => {
    const nested = (open: string, close: string, depth: number) =>
      `{"a":{"x":${open.repeat(depth)}${close.repeat(depth)},"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
    expect(parse(nested('[', ']', 128)).size).toBe(1)
    expect(await codeFor(nested('[', ']', 129))).toBe('ERR_SAFETENSORS_JSON_DEPTH')
    expect(await codeFor(nested('[', '', 100_000))).toBe('ERR_SAFETENSORS_JSON_DEPTH')
    expect(await codeFor(nested('{"k":', '}', 100_000))).toBe('ERR_SAFETENSORS_JSON_DEPTH')
    expect(await codeFor(`{"a":${'['.repeat(100_000)}`)).toBe('ERR_SAFETENSORS_JSON_DEPTH')
  })
})

describe('entries and ranges', () => {
  test.each([
    ['{"a":[]}', 'ENTRY_TYPE'],
    ['{"a":"F32"}', 'ENTRY_TYPE'],
    ['{"a":{}}', 'MEMBER_MISSING'],
    ['{"a":{"dtype":"F32","data_offsets":[0,4]}}', 'MEMBER_MISSING'],
    [withShape('{}'), 'SHAPE_TYPE'],
    [withShape('null'), 'SHAPE_TYPE'],
    [withShape('["1"]'), 'DIM_NOT_INTEGER'],
    [withShape('[[1]]'), 'DIM_NOT_INTEGER'],
    [withShape('[null]'), 'DIM_NOT_INTEGER'],
    [withShape('[1.0]'), 'DIM_NOT_INTEGER'],
    [withShape('[1E0]'), 'DIM_NOT_INTEGER'],
    [withShape('[-1.5]'), 'DIM_NOT_INTEGER'],
    [withShape('[-0]'), 'DIM_NEGATIVE'],
    [withShape('[1]', '4'), 'OFFSETS_PAIR'],
    [withShape('[1]', '[0]'), 'OFFSETS_PAIR'],
    [withShape('[1]', '[]'), 'OFFSETS_PAIR'],
    [withShape('[1]', '[0,4,8]'), 'OFFSETS_PAIR'],
    [withShape('[1]', '{"0":0,"1":4}'), 'OFFSETS_PAIR'],
    [withShape('[1]', '[0.5,4]'), 'OFFSET_NOT_INTEGER'],
    [withShape('[1]', '["0","4"]'), 'OFFSET_NOT_INTEGER'],
    [withShape('[1]', '[0,4.0]'), 'OFFSET_NOT_INTEGER'],
    [withShape('[1]', '[0,4e0]'), 'OFFSET_NOT_INTEGER'],
    [withShape('[1]', '[-8,8]'), 'OFFSET_NEGATIVE'],
    [withShape('[1]', '[16,8]'), 'RANGE_REVERSED'],
    [withShape('[1]', '[0,9007199254740992]'), 'INTEGER_TOO_LARGE'],
    [withShape('[1000,1000]'), 'SIZE_MISMATCH'],
    [withShape('[8589934592,2147483648]', '[0,0]'), 'SHAPE_OVERFLOW'],
    [withShape('[94906267,94906267]', '[0,0]', '"U8"'), 'SHAPE_OVERFLOW'],
    [withShape('[2251799813685249]', '[0,0]', '"F64"'), 'SHAPE_OVERFLOW'],
    [withShape('[2]', '[2,10]'), 'GAP']
  ])('refuses %s as %s', async (json, code) => {
    expect(await codeFor(json)).toBe(`ERR_SAFETENSORS_${code}`)
  })

  test('numbers and shapes of any length are too large, not infinite', async () => {
    const digits = '9'.repeat(400)
    expect(await codeFor(withShape('[1]', `[0,${digits}]`))).toBe('ERR_SAFETENSORS_INTEGER_TOO_LARGE')
    const shape = `[${Array(2000).fill(2).join()}]`
    expect(await codeFor(withShape(shape, '[0,0]'))).toBe('ERR_SAFETENSORS_SHAPE_OVERFLOW')
  })

  test('the largest safe integer is a number like any other', async () => {
    const json = withShape('[9007199254740991]', '[0,9007199254740991]', '"U8"')
    const table = parseHeader(fileOf(json), { fileBytes: 'implied' })
    expect(table.get('a')).toMatchObject({ shape: [9007199254740991], end: 9007199254740991 })
    expect(await codeFor(json, 1)).toBe('ERR_SAFETENSORS_DATA_TRUNCATED')
  })

  test('a dimension of 0 means 0 bytes, whatever stands beside it', () => {
    for (const shape of [
      '[0]',
      '[3,0,5]',
      '[0,9007199254740991,9007199254740991]',
      '[9007199254740991,9007199254740991,0]'
    ]) {
      expect(parse(withShape(shape, '[0,0]', '"F4"'), 0).get('a').byteLength).toBe(0)
    }
  })

  test('several empty tensors may share a boundary: start, middle and end', () => {
    const members = [
      `"e4":${entry('U8', [0], 8, 8)}`,
      `"b":${entry('F32', [1], 4, 8)}`,
      `"e1":${entry('U8', [0], 0, 0)}`,
      `"e3":${entry('F64', [0], 4, 4)}`,
      `"a":${F32}`,
      `"e2":${entry('U8', [0, 2], 4, 4)}`,
      `"e5":${entry('U8', [0], 8, 8)}`
    ]
    expect(parse(`{${members.join()}}`, 8).size).toBe(7)
  })

  test('an empty tensor inside another one is an overlap', async () => {
    expect(await codeFor(`{"a":${F32},"e":${entry('U8', [0], 2, 2)}}`)).toBe('ERR_SAFETENSORS_OVERLAP')
  })

  test('range faults name both tensors and the byte of the file', async () => {
    const json = `{"a":${entry('F32', [2], 0, 8)},"b":${entry('F32', [1], 4, 8)}}`
    const error = await errorOf(() => parse(json, 8))
    expect(error).toMatchObject({
      code: 'ERR_SAFETENSORS_OVERLAP',
      file: 'model.safetensors',
      tensor: 'b',
      offset: 8 + json.length + 4
    })
    expect(error.message).toContain('"a"')
  })

  test('entry faults point at the value in the file', async () => {
    const json = withShape('[1]', '[0,4.0]')
    const error = await errorOf(() => parse(json))
    expect([error.tensor, error.offset]).toEqual(['a', 8 + json.indexOf('4.0')])
    expect(error.message).toMatch(
      /data_offsets: expected an integer written in digits only, found 4\.0 \(file .*, byte 58\)/
    )
  })

  test('a truncated file is told what is missing and what to do', async () => {
    const bytes = fileOf(`{"a":${entry('U8', [1000], 0, 1000)}}`, 1000)
    for (const cut of [1, 500, 1000]) {
      const { code, message } = await errorOf(() =>
        parseHeader(bytes.subarray(0, bytes.length - cut), { file: 'x' })
      )
      expect(code).toBe('ERR_SAFETENSORS_DATA_TRUNCATED')
      expect(message).toContain(`expected a file of ${bytes.length} bytes, found ${bytes.length - cut}`)
      expect(message).toContain('fetch the file again')
    }
  })
})

describe('parseHeader', () => {
  test('every prefix of a valid file is refused', async () => {
    const bytes = fileOf(`{"a":${F32}}  `, 4)
    for (let length = 0; length < bytes.length; length++) {
      expect(await codeOf(() => parseHeader(bytes.subarray(0, length)))).toMatch(/TRUNCATED$/)
    }
  })

  test('the header length may be checked against a size given apart', async () => {
    const bytes = fileOf(`{"a":${F32}}`, 4)
    const head = bytes.subarray(0, bytes.length - 4)
    expect(parseHeader(head, { fileBytes: bytes.length }).dataBytes).toBe(4)
    expect(await codeOf(() => parseHeader(head))).toBe('ERR_SAFETENSORS_DATA_TRUNCATED')
    expect(() => parseHeader(head.subarray(0, 20), { fileBytes: bytes.length })).toThrow(RangeError)
    expect(
      await codeOf(() => parseHeader(fileOf('{}', 0, BigInt(bytes.length - 7)), { fileBytes: bytes.length }))
    ).toBe('ERR_SAFETENSORS_HEADER_TRUNCATED')
  })

  test('bytes in the middle of a larger buffer are read from their own start', () => {
    const bytes = fileOf(`{"a":${F32}}`, 4)
    const shifted = new Uint8Array(bytes.length + 3)
    shifted.set(bytes, 3)
    expect(parseHeader(shifted.subarray(3)).names()).toEqual(['a'])
  })

  test('misuse is a TypeError or RangeError', () => {
    const misused = parseHeader as (bytes: unknown, source?: unknown) => unknown
    const bytes = fileOf('{}')
    for (const wrong of ['{}', undefined, null, [123], bytes.buffer]) {
      expect(() => misused(wrong)).toThrow(typeError)
    }
    for (const wrong of [null, 'f', { file: 7 }, { file: {} }]) {
      expect(() => misused(bytes, wrong)).toThrow(typeError)
    }
    for (const fileBytes of [-1, 9.5, NaN, null, '9', 9n, Symbol('n')]) {
      expect(() => misused(bytes, { fileBytes })).toThrow(rangeError)
    }
    expect(() => misused(bytes.subarray(0, 9), { fileBytes: 10 })).toThrow(rangeError)
  })

  test('a hostile name does not flood the message', async () => {
    const { message, tensor } = await errorOf(() => parse(`{"${'n'.repeat(100_000)}":null}`))
    expect(message.length).toBeLessThan(500)
    expect(tensor).toHaveLength(100_000)
  })

  test('a name that sorts or hashes badly is found among 20,000', () => {
    const names = Array.from({ length: 20_000 }, (_, i) => `layers.${(i * 7919) % 20_000}.w`)
    const members = names.map((name, i) => `"${name}":${entry('U8', [1], i, i + 1)}`)
    const table = parse(`{${members.reverse().join()}}`, names.length)
    for (const [i, name] of names.entries()) expect(table.get(name).begin).toBe(i)
  })
})
