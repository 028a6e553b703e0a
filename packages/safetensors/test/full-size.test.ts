import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { openSharded } from '../src/folder.ts'
import { parseHeader } from '../src/header.ts'
import type { ShardedCheckpoint } from '../src/sharded.ts'
import { formatHeader } from '../src/write.ts'
import { errorOf, INDEX, temporaryFolder } from './cases.ts'
import { type FullSizeTensor, fullSizeIndex, fullSizeShards, headerOf, schema } from './full-size.mjs'

const { totals, shards: facts } = schema
const dir = temporaryFolder()
let shards: FullSizeTensor[][]
let checkpoint: ShardedCheckpoint

beforeAll(async () => {
  shards = fullSizeShards()
  for (const [i, shard] of shards.entries()) writeFileSync(join(dir, facts[i]!.file), headerOf(shard))
  writeFileSync(join(dir, INDEX), fullSizeIndex(shards))
  checkpoint = await openSharded(dir, { headersOnly: true })
})

test('the index of 60 MB and all 96 headers are joined to the stated totals', () => {
  expect(checkpoint.notices).toEqual([])
  expect([checkpoint.shards.length, checkpoint.size]).toEqual([totals.shards, totals.records])
  expect([checkpoint.tensorBytes, checkpoint.fileBytes]).toEqual([totals.tensor_bytes, totals.file_bytes])
})

test('every shard has the stated number of tensors, header and file size', () => {
  const found = checkpoint.shards.map(({ name, tensors }) => ({
    file: name,
    file_bytes: tensors.fileBytes,
    header_bytes: tensors.dataOffset,
    tensors: tensors.size
  }))
  expect(found).toEqual(
    facts.map(({ file, file_bytes, header_bytes, tensors }) => ({ file, file_bytes, header_bytes, tensors }))
  )
})

test('tensors lie where TENSORS.md says', () => {
  const prefix = 'language_model.model.layers.10.block_sparse_moe.experts.0.w3.weight_packed'
  const tensor = checkpoint.get(prefix)
  expect(tensor).toMatchObject({ shard: 10, dtype: 'U8', shape: [3072, 1792], byteLength: 5_505_024 })
  expect(tensor.fileOffset).toBe(1_268_568_368 + 11_698_176)
  const norm = checkpoint.get('language_model.model.layers.3.self_attn.kv_a_layernorm.weight')
  expect([norm.begin, norm.dtype]).toEqual([556_104_192, 'BF16'])
})

test('formatHeader writes the released headers byte for byte', () => {
  for (const shard of [0, 1, 3, 93, 94, 95]) {
    expect(Buffer.from(formatHeader(shards[shard]!)).equals(headerOf(shards[shard]!))).toBe(true)
  }
})

test('a wrong byte in a real header is named with its tensor', async () => {
  const header = Buffer.from(headerOf(shards[50]!))
  const at = header.indexOf('"shape":[3072,112]') + '"shape":[307'.length
  header[at] = '3'.charCodeAt(0)
  const folder = temporaryFolder({ 'model.safetensors': header })
  const error = await errorOf(() => openSharded(folder, { headersOnly: true }))
  expect([error.code, error.file]).toEqual([
    'ERR_SAFETENSORS_SIZE_MISMATCH',
    join(folder, 'model.safetensors')
  ])
  expect(error.tensor).toMatch(/layers\.50\.block_sparse_moe\.experts\.0\.w1\.weight_scale$/)
  expect(at - error.offset!).toBeLessThan(100)
})

test('a table keeps nothing of the header bytes', () => {
  const header = headerOf(shards[94]!)
  const table = parseHeader(header, { fileBytes: 'implied' })
  header.fill(0)
  expect(table.get('mm_projector.proj.2.weight').shape).toEqual([7168, 4096])
})
