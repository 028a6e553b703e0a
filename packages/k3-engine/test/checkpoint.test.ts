import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { codes, expertSlot } from '../src/checkpoint/expert-names.js'
import { type CheckpointReport, inspectCheckpoint, openCheckpoint } from '../src/checkpoint.js'
import { K3Error } from '../src/errors.js'
import { expertTensorName, tensorBytes } from '../src/tensor-names.js'
import { type FolderPlan, planFolder, writeFolder } from './checkpoint-folder.js'

const folders: string[] = []
function written(plan: FolderPlan): string {
  const dir = writeFolder(plan)
  folders.push(dir)
  return dir
}
afterEach(() => {
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true })
})

async function refusal(plan: FolderPlan): Promise<K3Error> {
  const error: unknown = await openCheckpoint(written(plan)).then(
    () => new Error('the checkpoint was accepted'),
    (reason: unknown) => reason
  )
  if (error instanceof K3Error) return error
  throw error
}

const demoDir = fileURLToPath(new URL('../../demo-model/model', import.meta.url))
const EXPERT = 'language_model.model.layers.1.block_sparse_moe.experts.10.'

describe('openCheckpoint', { timeout: 30_000 }, () => {
  test('places every tensor of a synthetic checkpoint', async () => {
    const plan = planFolder('tiny')
    const checkpoint = await openCheckpoint(written(plan))
    expect(checkpoint.files.length).toBe(14)
    expect(checkpoint.notices).toEqual([])
    plan.shards.forEach((records, file) => {
      const bytes = records.map(tensorBytes)
      const end = checkpoint.extent(records.at(-1)!.name)
      let offset = end.offset + end.bytes - bytes.reduce((sum, b) => sum + b, 0)
      records.forEach(({ name, dtype, shape }, i) => {
        expect(checkpoint.extent(name)).toEqual({ file, offset, bytes: bytes[i], dtype, shape })
        offset += bytes[i]!
      })
    })
  })

  test('gives each expert one run whose parts lie as the layout says', async () => {
    const checkpoint = await openCheckpoint(written(planFolder('tiny')))
    const area = checkpoint.experts(1)
    expect(area.layout).toEqual({
      w1Packed: 0,
      w1Scale: 3072,
      w2Packed: 3264,
      w2Scale: 6336,
      w3Packed: 6528,
      w3Scale: 9600
    })
    expect(area.bytes).toBe(9792)
    // experts are sorted as text: 0, 1, 10, 11, …
    expect(area.base(10) - area.base(1)).toBe(area.bytes)
    const w2Scale = checkpoint.extent(expertTensorName(1, 10, 'w2.weight_scale'))
    expect(w2Scale).toMatchObject({ file: area.file, offset: area.base(10) + 6336, shape: [96, 2] })
  })

  test('opens the demo model', async () => {
    const checkpoint = await openCheckpoint(demoDir)
    expect(checkpoint.files.length).toBe(6)
    expect(checkpoint.plan.length).toBe(13)
    for (const { index, ffn } of checkpoint.plan) {
      if (ffn === 'moe') expect(checkpoint.experts(index).bytes).toBe(6528)
    }
  })

  test('accepts the vision tensors of the released tower', async () => {
    const checkpoint = await openCheckpoint(written(planFolder('tiny', [], true)))
    expect(checkpoint.files.length).toBe(16)
    expect(checkpoint.extent('mm_projector.proj.2.weight').shape).toEqual([192, 4096])
  })

  test.each([
    [1, 128],
    [128, 128],
    [129, 256]
  ])('takes A_log of %i heads padded to %i', async (heads, length) => {
    const checkpoint = await openCheckpoint(
      written(planFolder('tiny', [`kda_num_heads=${heads}`, 'num_hidden_layers=2']))
    )
    expect(checkpoint.extent('language_model.model.layers.0.self_attn.A_log').shape).toEqual([length])
  })

  test('has no extent for what is not there', async () => {
    const checkpoint = await openCheckpoint(written(planFolder('tiny')))
    for (const name of ['', 'lm_head.weight', expertTensorName(0, 0, 'w1.weight_packed'), `${EXPERT}w4`]) {
      expect(() => checkpoint.extent(name)).toThrow(RangeError)
    }
    expect(() => checkpoint.extent(expertTensorName(1, 24, 'w1.weight_packed'))).toThrow(RangeError)
    for (const layer of [-1, 0, 13, 0.5]) expect(() => checkpoint.experts(layer)).toThrow(RangeError)
    for (const expert of [-1, 24, 0.5]) expect(() => checkpoint.experts(1).base(expert)).toThrow(RangeError)
  })
})

describe('openCheckpoint refuses', { timeout: 30_000 }, () => {
  test('a folder without config.json', async () => {
    await expect(openCheckpoint(path.join(demoDir, 'nowhere'))).rejects.toMatchObject({
      code: 'ERR_K3_CONFIG_FILE',
      file: path.join(demoDir, 'nowhere', 'config.json')
    })
  })

  test('a configuration that is no UTF-8, or starts with a byte order mark', async () => {
    const dir = written(planFolder('tiny'))
    for (const bytes of [Buffer.from([0x7b, 0xff, 0x7d]), Buffer.from('\ufeff{}')]) {
      writeFileSync(path.join(dir, 'config.json'), bytes)
      await expect(openCheckpoint(dir)).rejects.toMatchObject({ code: 'ERR_K3_CONFIG_JSON' })
    }
  })

  test('a missing tensor, by name', async () => {
    const plan = planFolder('tiny')
    const [gone] = plan.shards[3]!.splice(5, 1)
    const error = await refusal(plan)
    expect(error).toMatchObject({ code: 'ERR_K3_TENSORS', tensor: gone!.name })
    expect(error.message).toContain('1 missing')
  })

  test('a missing expert scale, by name', async () => {
    const plan = planFolder('tiny')
    plan.shards[1] = plan.shards[1]!.filter(({ name }) => name !== `${EXPERT}w2.weight_scale`)
    expect(await refusal(plan)).toMatchObject({
      code: 'ERR_K3_TENSORS',
      tensor: `${EXPERT}w2.weight_scale`,
      need: 'U8 [96,2]'
    })
  })

  test('a tensor that its shard holds and the index leaves out', async () => {
    const plan = planFolder('tiny')
    plan.unlisted.add(`${EXPERT}w1.weight_scale`)
    expect(await refusal(plan)).toMatchObject({
      code: 'ERR_K3_TENSORS',
      tensor: `${EXPERT}w1.weight_scale`
    })
  })

  test.each([
    'language_model.model.layers.1.self_attn.bias',
    'language_model.model.layers.13.input_layernorm.weight',
    'language_model.model.layers.01.input_layernorm.weight',
    'language_model.model.layers.1.block_sparse_moe.experts.24.w1.weight_packed',
    'language_model.model.layers.1.block_sparse_moe.experts.01.w1.weight_packed',
    'language_model.model.layers.0.block_sparse_moe.experts.0.w1.weight_packed',
    '__proto__'
  ])('the unexpected tensor %s', async (name) => {
    const plan = planFolder('tiny')
    plan.shards[2]!.push({ name, dtype: 'U8', shape: [64, 48] })
    expect(await refusal(plan)).toMatchObject({ code: 'ERR_K3_TENSORS', tensor: name, have: 'U8 [64,48]' })
  })

  test.each([
    [1, 'language_model.model.layers.1.self_attn.A_log', [3], '[128]'],
    [1, 'language_model.model.layers.1.self_attn.A_log', [256], '[128]'],
    [1, `${EXPERT}w1.weight_packed`, [48, 64], '[64,48]'],
    [0, 'language_model.model.layers.0.input_layernorm.weight', [1, 192], '[192]'],
    [13, 'language_model.lm_head.weight', [512, 191], '[512,192]']
  ])('in shard %i the misshapen tensor %s %j', async (shard, name, shape, need) => {
    const plan = planFolder('tiny')
    plan.shards[shard] = plan.shards[shard]!.map((record) =>
      record.name === name ? { ...record, shape } : record
    )
    const error = await refusal(plan)
    expect(error).toMatchObject({ code: 'ERR_K3_TENSORS', tensor: name, have: `[${shape}]`, need })
    expect(error.message).toContain('1 misshapen')
  })

  test('another dtype of the same size', async () => {
    const plan = planFolder('tiny')
    const name = 'language_model.model.norm.weight'
    plan.shards[13] = plan.shards[13]!.map((record) =>
      record.name === name ? { ...record, dtype: 'F16' as 'BF16' } : record
    )
    expect(await refusal(plan)).toMatchObject({
      code: 'ERR_K3_TENSORS',
      tensor: name,
      have: 'F16',
      need: 'BF16'
    })
  })

  test('a vision tower with a tensor missing', async () => {
    const plan = planFolder('tiny', [], true)
    plan.shards[15]!.pop()
    expect((await refusal(plan)).message).toContain('1 missing')
  })

  test('the tensors of another model, counted, with a few of them named', async () => {
    const error = await refusal({
      ...planFolder('tiny'),
      config: planFolder('tiny', ['num_experts=30']).config
    })
    expect(error.code).toBe('ERR_K3_TENSORS')
    // 12 MoE layers lack 6 experts of 6 tensors each, and their routers and biases have 24 rows
    expect(error.message).toContain('432 missing')
    expect(error.message).toContain('24 misshapen')
    expect(error.message.split('\n').length).toBe(14)
  })

  test('experts whose parts lie differently', async () => {
    const plan = planFolder('tiny')
    const records = plan.shards[1]!
    const at = records.findIndex(({ name }) => name.startsWith(EXPERT))
    ;[records[at], records[at + 4]] = [records[at + 4]!, records[at]!]
    expect(await refusal(plan)).toMatchObject({
      code: 'ERR_K3_EXPERT_LAYOUT',
      tensor: expect.stringContaining(EXPERT)
    })
  })

  test('experts with something in between their parts', async () => {
    const plan = planFolder('tiny')
    const records = plan.shards[1]!
    const scales = records.filter(({ name }) => name.endsWith('weight_scale'))
    plan.shards[1] = [...records.filter(({ name }) => !name.endsWith('weight_scale')), ...scales]
    expect((await refusal(plan)).code).toBe('ERR_K3_EXPERT_LAYOUT')
  })

  test('experts of one layer in two files', async () => {
    const plan = planFolder('tiny')
    const moved = plan.shards[1]!.filter(({ name }) => name.startsWith(EXPERT))
    plan.shards[1] = plan.shards[1]!.filter(({ name }) => !name.startsWith(EXPERT))
    plan.shards[2]!.push(...moved)
    expect(await refusal(plan)).toMatchObject({ code: 'ERR_K3_EXPERT_LAYOUT' })
  })
})

describe('inspectCheckpoint', { timeout: 30_000 }, () => {
  const composition = ({ dir: _, ...rest }: CheckpointReport) => rest

  test('reports the same for headers alone as for whole files', async () => {
    const whole = await inspectCheckpoint(written(planFolder('tiny')), { headersOnly: false })
    const plan = { ...planFolder('tiny'), headersOnly: true }
    const headers = await inspectCheckpoint(written(plan), { headersOnly: true })
    expect(composition(headers)).toEqual(composition(whole))
    expect(whole.records).toBe(plan.shards.flat().length)
    expect(whole.tensorBytes).toBe(plan.shards.flat().reduce((sum, record) => sum + tensorBytes(record), 0))
    expect(whole.layers[3]).toMatchObject({ index: 3, mixer: 'mla', ffn: 'moe', expertBytes: 24 * 9792 })
    const layerBytes = whole.layers.reduce(
      (sum, { trunkBytes, expertBytes }) => sum + trunkBytes + expertBytes,
      0
    )
    expect(layerBytes + 2 * 512 * 192 * 2 + 3 * 192 * 2).toBe(whole.tensorBytes)
  })

  test('passes on what is only worth a notice', async () => {
    const plan = planFolder('tiny')
    plan.shards[2]!.push({ name: 'stray', dtype: 'U8', shape: [8] })
    plan.unlisted.add('stray')
    const report = await inspectCheckpoint(written(plan), { headersOnly: false })
    expect(report.notices.some((notice) => notice.includes('stray'))).toBe(true)
    expect(report.records).toBe(plan.shards.flat().length - 1)
  })
})

describe('inspectCheckpoint on headers alone', () => {
  test('refuses any change of one header byte and names the file', { timeout: 60_000 }, async () => {
    const dir = written({
      ...planFolder('tiny', ['num_hidden_layers=2', 'num_experts=4']),
      headersOnly: true
    })
    await inspectCheckpoint(dir, { headersOnly: true })
    for (const shard of [1, 2, 3]) {
      const file = path.join(dir, `model-0000${shard}-of-000003.safetensors`)
      const header = readFileSync(file)
      for (let at = 0; at < header.length; at += at < 64 ? 1 : 29) {
        const changed = Buffer.from(header)
        changed[at] = header[at]! ^ (1 << (at % 7))
        writeFileSync(file, changed)
        const error: unknown = await inspectCheckpoint(dir, { headersOnly: true }).catch((reason) => reason)
        expect(error, `byte ${at} of shard ${shard}`).toBeInstanceOf(Error)
        expect((error as Error & { file: string }).file, `byte ${at} of shard ${shard}`).toContain(dir)
      }
      writeFileSync(file, header)
    }
  })
})

describe('expertSlot', () => {
  const suffixes = ['w1.weight_packed', 'w1.weight_scale'].map(codes)

  test('reads layer, expert and part', () => {
    const name = expertTensorName(92, 895, 'w1.weight_scale')
    expect(expertSlot(name, suffixes)).toEqual({ layer: 92, expert: 895, part: 1 })
  })

  test.each(['', '.w1', '.w1.weight_scale.', '.w1.weight_scal', 'x.w1.weight_scale', '.w3.weight_scale'])(
    'takes nothing for a name that ends in "%s"',
    (end) => {
      expect(
        expertSlot(`language_model.model.layers.1.block_sparse_moe.experts.1${end}`, suffixes)
      ).toBeNull()
    }
  )

  test('recognises every expert tensor and nothing else', () => {
    const plan = planFolder('tiny')
    const all = plan.shards.flat().map(({ name }) => name)
    const found = all.filter((name) => expertSlot(name, suffixes) !== null)
    expect(found).toEqual(all.filter((name) => name.includes('.experts.') && name.includes('.w1.')))
  })
})
