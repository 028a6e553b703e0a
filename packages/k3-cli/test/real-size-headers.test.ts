import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type CheckpointReport, inspectCheckpoint } from '@k3/engine/checkpoint'
import { geometryOf } from '@k3/synth'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type WrittenCheckpoint, writeCheckpoint } from '../src/synth/write-checkpoint.js'

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

describe('the headers of the released checkpoint', { timeout: 120_000 }, () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'k3-headers-'))
  let written: WrittenCheckpoint
  let report: CheckpointReport
  beforeAll(async () => {
    written = await writeCheckpoint(geometryOf('full'), 1n, dir, { headersOnly: true })
    report = await inspectCheckpoint(dir, { headersOnly: true })
  }, 120_000)
  afterAll(() => rmSync(dir, { recursive: true }))

  test('are 96 files of the known sizes', () => {
    const sizes = schema.shards.map(({ file }) => statSync(path.join(dir, file)).size)
    expect(sizes).toEqual(schema.shards.map(({ header_bytes }) => header_bytes))
    expect(sizes.length).toBe(schema.totals.shards)
  })

  test('add up to the known totals', () => {
    const { totals } = schema
    expect(written).toEqual({
      shards: totals.shards,
      tensors: totals.records,
      tensorBytes: totals.tensor_bytes,
      fileBytes: totals.file_bytes
    })
    expect([report.records, report.tensorBytes, report.fileBytes]).toEqual([
      497_220, 1_560_860_324_864, 1_560_936_091_448
    ])
    expect(report.notices).toEqual([])
  })

  test('describe each shard as the schema does', () => {
    const rows = report.shards.map(
      ({ file, fileBytes, headerBytes, tensors, dtypeBytes, expertAreaStart }) => ({
        file,
        file_bytes: fileBytes,
        header_bytes: headerBytes,
        tensors,
        f32_bytes: dtypeBytes.F32,
        bf16_bytes: dtypeBytes.BF16,
        u8_bytes: dtypeBytes.U8,
        u8_offset: expertAreaStart
      })
    )
    expect(rows).toEqual(
      schema.shards.map(({ holds: _, ...row }: Schema['shards'][0] & { holds?: string }) => row)
    )
  })

  test('report the bytes of every layer', () => {
    const [dense, kda, , mla] = report.layers
    expect([dense!.trunkBytes, dense!.expertBytes]).toEqual([2_341_213_184, 0])
    expect([kda!.trunkBytes, kda!.expertBytes]).toEqual([1_267_744_256, 15_722_348_544])
    expect([mla!.trunkBytes, mla!.expertBytes]).toEqual([844_335_616, 15_722_348_544])
    expect(report.layers.reduce((sum, { trunkBytes }) => sum + trunkBytes, 0)).toBe(108_811_877_376)
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
    writeFileSync(
      file,
      Buffer.concat([header.subarray(0, at), Buffer.from(to), header.subarray(at + to.length)])
    )
    try {
      const error = await inspectCheckpoint(dir, { headersOnly: true }).catch((reason: unknown) => reason)
      expect(error).toMatchObject({ code, tensor: expect.stringContaining('layers.49.') })
      expect((error as Error).message).toContain('layers.49.')
    } finally {
      writeFileSync(file, header)
    }
  })
})
