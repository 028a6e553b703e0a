import { readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { k3, k3Object, scratchFolder } from './k3.js'

interface Schema {
  readonly totals: { records: number; tensor_bytes: number; file_bytes: number; shards: number }
  readonly shards: {
    file: string
    file_bytes: number
    header_bytes: number
    tensors: number
    f32_bytes: number
    bf16_bytes: number
    u8_bytes: number
    u8_offset: number | null
  }[]
}
const schemaFile = new URL('../../../docs/spec/schema.json', import.meta.url)
const schema = JSON.parse(readFileSync(schemaFile, 'utf8')) as Schema

interface Report {
  readonly records: number
  readonly tensor_bytes: number
  readonly file_bytes: number
  readonly notices: readonly string[]
  readonly layers: readonly { trunk_bytes: number; expert_bytes: number }[]
  readonly shards: readonly {
    file: string
    header_bytes: number
    tensors: number
    dtype_bytes: { F32: number; BF16: number; U8: number }
    file_bytes: number
    expert_area_start: number | null
  }[]
}

describe('the headers of the released checkpoint', { timeout: 120_000 }, () => {
  const dir = scratchFolder()
  const inspect = ['inspect', '--headers', '--model', dir, '--json']
  let written: Record<string, unknown>
  let report: Report
  beforeAll(async () => {
    const synth = ['synth', '--preset', 'full', '--headers-only', '--seed', '1', '--out', dir, '--json']
    written = await k3Object(synth)
    report = (await k3Object(inspect)) as unknown as Report
  }, 120_000)

  test('are 96 files of the known sizes', () => {
    const sizes = schema.shards.map(({ file }) => statSync(path.join(dir, file)).size)
    expect(sizes).toEqual(schema.shards.map(({ header_bytes }) => header_bytes))
    expect(sizes.length).toBe(schema.totals.shards)
  })

  test('add up to the known totals', () => {
    const { totals } = schema
    expect(written).toMatchObject({
      headers_only: true,
      shards: totals.shards,
      tensors: totals.records,
      tensor_bytes: totals.tensor_bytes,
      file_bytes: totals.file_bytes
    })
    expect([report.records, report.tensor_bytes, report.file_bytes]).toEqual([
      497_220, 1_560_860_324_864, 1_560_936_091_448
    ])
    expect(report.notices).toEqual([])
  })

  test('describe each shard as the schema does', () => {
    const rows = report.shards.map(({ dtype_bytes, expert_area_start, ...shard }) => ({
      ...shard,
      f32_bytes: dtype_bytes.F32,
      bf16_bytes: dtype_bytes.BF16,
      u8_bytes: dtype_bytes.U8,
      u8_offset: expert_area_start
    }))
    expect(rows).toEqual(
      schema.shards.map(({ holds: _, ...row }: Schema['shards'][0] & { holds?: string }) => row)
    )
  })

  test('report the bytes of every layer', () => {
    const [dense, kda, , mla] = report.layers
    expect(dense).toMatchObject({ trunk_bytes: 2_341_213_184, expert_bytes: 0 })
    expect(kda).toMatchObject({ trunk_bytes: 1_267_744_256, expert_bytes: 15_722_348_544 })
    expect(mla).toMatchObject({ trunk_bytes: 844_335_616, expert_bytes: 15_722_348_544 })
    expect(report.layers.reduce((sum, { trunk_bytes }) => sum + trunk_bytes, 0)).toBe(108_811_877_376)
  })

  test.each([
    ['U8', 'I8', 'ERR_K3_TENSORS'],
    ['experts.895.w3', 'experts.895.w4', 'ERR_SAFETENSORS_TENSOR_MISSING'],
    ['[3072,1792]', '[3072,1793]', 'ERR_SAFETENSORS_SIZE_MISMATCH']
  ])('are refused when one %s becomes %s', async (from, to, code) => {
    const name = 'model-00050-of-000096.safetensors'
    const file = path.join(dir, name)
    const header = readFileSync(file)
    const at = header.indexOf(from)
    const tail = header.subarray(at + to.length)
    writeFileSync(file, Buffer.concat([header.subarray(0, at), Buffer.from(to), tail]))
    try {
      const outcome = await k3(inspect)
      expect(outcome.code).toBe(3)
      const { ok, error } = JSON.parse(outcome.stdout) as { ok: boolean; error: Record<string, string> }
      expect([ok, error.code]).toEqual([false, code])
      expect(error.tensor).toContain('layers.49.')
      expect(error.message).toContain('layers.49.')
      expect(error.file).toContain(dir)
    } finally {
      writeFileSync(file, header)
    }
  })
})
