import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openFile } from '../src/file.ts'
import { openSharded } from '../src/folder.ts'
import { parseHeader } from '../src/header.ts'
import { errorOf } from './cases.ts'
import { casesOf, expectedCodes, pathOf } from './fixtures.ts'

describe('openFile', () => {
  test.each(casesOf('st', 'accept'))('accepts $name', async (one) => {
    await using file = await openFile(pathOf(one))
    if (one.tensors !== undefined) expect(file.tensors.names()).toEqual(one.tensors)
    for (const tensor of file.tensors) {
      expect((await file.read(tensor.name)).byteLength).toBe(tensor.byteLength)
    }
  })

  test.each(casesOf('st', 'reject'))('refuses $name with the code of its rule', async (one) => {
    const error = await errorOf(() => openFile(pathOf(one)))
    expect(error.code).toBe(expectedCodes.st.get(one.name))
    expect(error.file).toBe(pathOf(one))
    expect(error.offset).not.toBeNull()
  })
})

describe('parseHeader', () => {
  test.each([...casesOf('st', 'accept'), ...casesOf('st', 'reject')])('agrees on $name', async (one) => {
    const bytes = readFileSync(pathOf(one))
    if (one.verdict === 'accept') expect(parseHeader(bytes).fileBytes).toBe(bytes.length)
    else expect((await errorOf(() => parseHeader(bytes))).code).toBe(expectedCodes.st.get(one.name))
  })
})

describe('openSharded', () => {
  test.each(casesOf('index', 'accept'))('accepts $name', async (one) => {
    const checkpoint = await openSharded(pathOf(one))
    const names = one.tensors === undefined ? ['a', 'b'] : one.tensors
    expect([...checkpoint.names()]).toEqual(names)
  })

  test.each(casesOf('index', 'reject'))('refuses $name with the code of its rule', async (one) => {
    const error = await errorOf(() => openSharded(pathOf(one)))
    expect(error.code).toBe(expectedCodes.index.get(one.name))
    expect(error.file).not.toBeNull()
  })

  test('notices what it accepts only with a remark', async () => {
    const noticesOf = async (name: string) => {
      const one = casesOf('index', 'accept').find((candidate) => candidate.name === name)!
      return (await openSharded(pathOf(one))).notices.map(({ code, tensor, file }) => [
        code,
        tensor,
        basename(file!)
      ])
    }
    expect(await noticesOf('index-ok')).toEqual([])
    expect(await noticesOf('index-total-size-wrong')).toEqual([
      ['ERR_SAFETENSORS_TOTAL_SIZE', null, 'model.safetensors.index.json']
    ])
    expect(await noticesOf('index-unlisted-tensor')).toEqual([
      ['ERR_SAFETENSORS_INDEX_UNLISTED', 'x', 'model-00001-of-000002.safetensors']
    ])
  })
})

test('the table of codes names every refused case and nothing else', () => {
  for (const kind of ['st', 'index'] as const) {
    const names = casesOf(kind, 'reject').map(({ name }) => name)
    expect([...expectedCodes[kind].keys()].sort()).toEqual(names.sort())
  }
})
