import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DTYPE_NAMES, type Dtype } from '../src/dtypes.ts'
import { openFile } from '../src/file.ts'
import { parseHeader } from '../src/header.ts'
import { formatHeader, writeFile } from '../src/write.ts'
import { codeOf, temporaryFolder } from './cases.ts'

const f32 = (name: string, shape: number[] = [1]) => ({ name, dtype: 'F32' as const, shape })

describe('formatHeader', () => {
  test('writes compact JSON in the order given, padded to 8 bytes', () => {
    const bytes = formatHeader([f32('b', [2, 3]), { name: 'a', dtype: 'F4', shape: [3, 2] }])
    const json =
      '{"b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"a":{"dtype":"F4","shape":[3,2],"data_offsets":[24,27]}}'
    expect(bytes.byteLength % 8).toBe(0)
    expect(Buffer.from(bytes.subarray(8)).toString()).toBe(json.padEnd(bytes.byteLength - 8))
    expect(bytes[0]).toBe(bytes.byteLength - 8)
  })

  test('writes metadata first, and {} for nothing', () => {
    expect(
      Buffer.from(formatHeader([], { k: 'é' }).subarray(8))
        .toString()
        .trimEnd()
    ).toBe('{"__metadata__":{"k":"é"}}')
    expect(Buffer.from(formatHeader([])).toString('latin1')).toBe('\b\0\0\0\0\0\0\0{}      ')
    expect(parseHeader(formatHeader([])).size).toBe(0)
  })

  test.each([
    ['DUPLICATE_TENSOR', [f32('a'), f32('a')]],
    ['RESERVED_NAME', [f32('__metadata__')]],
    ['JSON_STRING', [f32('a\ud83d')]],
    ['DTYPE_UNKNOWN', [{ ...f32('a'), dtype: 'F33' as Dtype }]],
    ['SHAPE_TYPE', [{ ...f32('a'), shape: 3 as unknown as number[] }]],
    ['DIM_NOT_INTEGER', [f32('a', [-1])]],
    ['DIM_NOT_INTEGER', [f32('a', [1.5])]],
    ['DIM_NOT_INTEGER', [f32('a', [2 ** 53])]],
    ['DIM_NOT_INTEGER', [f32('a', ['1' as unknown as number])]],
    ['SUB_BYTE', [{ name: 'a', dtype: 'F6_E2M3' as const, shape: [2] }]],
    ['SHAPE_OVERFLOW', [f32('a', [2 ** 30, 2 ** 30])]],
    ['SHAPE_OVERFLOW', [f32('a', [2 ** 50]), f32('b', [2 ** 50])]]
  ])('refuses with %s what no reader would take', async (code, tensors) => {
    expect(await codeOf(() => formatHeader(tensors))).toBe(`ERR_SAFETENSORS_${code}`)
  })

  test('refuses metadata that is no string or no UTF-8', async () => {
    const number = { step: 0 } as unknown as Record<string, string>
    expect(await codeOf(() => formatHeader([], number))).toBe('ERR_SAFETENSORS_METADATA_VALUE')
    expect(await codeOf(() => formatHeader([], { k: '\udc00' }))).toBe('ERR_SAFETENSORS_JSON_STRING')
  })

  test('refuses a header above the cap of the format', async () => {
    const name = 'n'.repeat(50_000_000)
    expect(await codeOf(() => formatHeader([f32(`${name}a`), f32(`${name}b`)]))).toBe(
      'ERR_SAFETENSORS_HEADER_TOO_LARGE'
    )
  })
})

describe('writeFile', () => {
  test('whatever is written is read back: names, dtypes, shapes, bytes, metadata', async () => {
    const path = join(temporaryFolder(), 'x.safetensors')
    const text = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((name) => name !== '__metadata__')
    const tensor = fc.record({
      name: fc.oneof(text, fc.constantFrom('__proto__', 'a\0b', '"\\/\n', '')),
      dtype: fc.constantFrom(...DTYPE_NAMES),
      // a multiple of 4 elements is a whole number of bytes for every dtype
      shape: fc.array(fc.nat({ max: 3 }), { maxLength: 3 }).map((dims) => [...dims, 4])
    })
    const tensors = fc.uniqueArray(tensor, { selector: ({ name }) => name, maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(tensors, fc.dictionary(text, text), fc.nat(255), async (specs, metadata, seed) => {
        const sized = parseHeader(formatHeader(specs), { fileBytes: 'implied' })
        const sources = specs.map((spec) => {
          const data = new Uint8Array(sized.get(spec.name).byteLength).map((_, i) => (i * 31 + seed) & 255)
          return { ...spec, data }
        })
        await writeFile(path, sources, metadata)
        await using file = await openFile(path)
        expect(Object.fromEntries(file.tensors.metadata!)).toEqual({ ...metadata })
        expect([...file.tensors].map(({ name, dtype, shape }) => ({ name, dtype, shape }))).toEqual(specs)
        for (const { name, data } of sources) expect(await file.read(name)).toEqual(data)
      }),
      { numRuns: 60, seed: 7 }
    )
  })

  test('writes the bytes of any view, and files without tensors', async () => {
    const path = join(temporaryFolder(), 'x.safetensors')
    const data = Float32Array.of(9, 1, 2, 9).subarray(1, 3)
    await writeFile(path, [{ ...f32('w', [2]), data }])
    expect(readFileSync(path).subarray(-8)).toEqual(Buffer.from(Float32Array.of(1, 2).buffer))
    await writeFile(path, [], { only: 'metadata' })
    await using file = await openFile(path)
    expect([file.tensors.size, file.tensors.metadata!.get('only')]).toEqual([0, 'metadata'])
  })

  test('leaves the old file and no other when it refuses or fails', async () => {
    const dir = temporaryFolder({ 'x.safetensors': 'old' })
    const path = join(dir, 'x.safetensors')
    const short = { ...f32('w', [2]), data: new Uint8Array(7) }
    expect(await codeOf(() => writeFile(path, [short]))).toBe('ERR_SAFETENSORS_SIZE_MISMATCH')
    expect(readdirSync(dir)).toEqual(['x.safetensors'])
    expect(readFileSync(path, 'utf8')).toBe('old')
    mkdirSync(join(dir, 'taken'))
    writeFileSync(join(dir, 'taken', 'inside'), '')
    expect(await codeOf(() => writeFile(join(dir, 'taken'), []))).toBe('ERR_SAFETENSORS_IO')
    expect(await codeOf(() => writeFile(join(dir, 'absent', 'x'), []))).toBe('ERR_SAFETENSORS_IO')
    expect(readdirSync(dir).sort()).toEqual(['taken', 'x.safetensors'])
  })
})
