import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseConfig } from '../src/config.js'
import { byFileOrder, type TensorRecord, tensorBytes, tensorGroups } from '../src/tensor-names.js'

const spec = new URL('../../../docs/spec/', import.meta.url)
const config = parseConfig(readFileSync(new URL('config.k3.json', spec), 'utf8'))

interface Schema {
  readonly totals: { records: number; tensor_bytes: number; records_by_dtype: Record<string, number> }
  readonly layer_sets: { kda: number[]; mla: number[] }
  readonly tensors: { name: string; dtype: string; shape: number[]; layers?: string | number[] }[]
  readonly shards: {
    tensors: number
    f32_bytes: number
    bf16_bytes: number
    u8_bytes: number
    holds: string
  }[]
}
const schema = JSON.parse(readFileSync(new URL('schema.json', spec), 'utf8')) as Schema

function schemaRecords(): string[] {
  const { kda, mla } = schema.layer_sets
  const moe = Array.from({ length: 92 }, (_, i) => i + 1)
  const sets: Record<string, number[]> = { kda, mla, moe, all: [0, ...moe] }
  const lines: string[] = []
  for (const { name, dtype, shape, layers } of schema.tensors) {
    const row = ` ${dtype} ${shape}`
    const numbers = typeof layers === 'string' ? sets[layers]! : layers === undefined ? [0] : layers
    for (const layer of numbers) {
      const inLayer = name.replace('{L}', String(layer))
      if (inLayer.includes('{E}')) {
        for (let e = 0; e < 896; e++) lines.push(inLayer.replace('{E}', String(e)) + row)
      } else if (inLayer.includes('{B}')) {
        for (let b = 0; b < 27; b++) lines.push(inLayer.replace('{B}', String(b)) + row)
      } else lines.push(inLayer + row)
    }
  }
  return lines
}

const line = ({ name, dtype, shape }: TensorRecord): string => `${name} ${dtype} ${shape}`

describe('tensorGroups', { timeout: 60_000 }, () => {
  test('expands to the 497,220 released records', () => {
    const records = [...tensorGroups(config, true)].flatMap((group) => group.records.map(line))
    expect(records.length).toBe(schema.totals.records)
    const expected = new Set(schemaRecords())
    expect(expected.size).toBe(schema.totals.records)
    expect(records.filter((record) => !expected.has(record))).toEqual([])
    expect(new Set(records).size).toBe(records.length)
  })

  test('gives each of the 96 shards its records and bytes', () => {
    const rows = [...tensorGroups(config, true)].map(({ records }) => {
      const bytes = { F32: 0, BF16: 0, U8: 0 }
      for (const record of records) bytes[record.dtype] += tensorBytes(record)
      return [records.length, bytes.F32, bytes.BF16, bytes.U8]
    })
    expect(rows).toEqual(schema.shards.map((s) => [s.tensors, s.f32_bytes, s.bf16_bytes, s.u8_bytes]))
    const total = rows.reduce((sum, [, f32, bf16, u8]) => sum + f32! + bf16! + u8!, 0)
    expect(total).toBe(schema.totals.tensor_bytes)
  })

  test('sorts by dtype, then by name with expert numbers as text', () => {
    for (const { records } of tensorGroups(config, true)) {
      expect(records.every((record, i) => i === 0 || byFileOrder(records[i - 1]!, record) < 0)).toBe(true)
    }
    const [, layer1] = tensorGroups(config, false)
    const first = layer1!.records.filter(({ name }) => name.endsWith('w1.weight_packed')).slice(0, 4)
    expect(first.map(({ name }) => name.split('.')[6])).toEqual(['0', '1', '10', '100'])
    expect(layer1!.records[0]!.dtype).toBe('F32')
  })

  test('leaves the vision shards out unless asked for', () => {
    expect([...tensorGroups(config, false)].map(({ holds }) => holds).slice(-2)).toEqual([
      'layer 92',
      'model'
    ])
  })
})
