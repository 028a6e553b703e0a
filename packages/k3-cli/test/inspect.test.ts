import { copyFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { describe, expect, test } from 'vitest'
import { fixture, k3, k3Object, scratchFolder } from './k3.js'

interface Malformed {
  readonly kind: 'st' | 'index' | 'config'
  readonly name: string
  readonly verdict: 'accept' | 'reject'
  readonly path: string
  readonly tensors?: string[]
}
const cases = JSON.parse(readFileSync(fixture('malformed/expected.json'), 'utf8')) as Malformed[]
const FLAG = { st: '--file', index: '--model', config: '--config' }

const verdictOf = async ({ kind, path: name }: Malformed) => {
  const args = ['inspect', FLAG[kind], fixture(`malformed/${name}`), '--json']
  const { code, stdout, stderr } = await k3(args)
  return { code, stderr, object: JSON.parse(stdout) as Record<string, unknown> }
}

describe('k3 inspect on the malformed fixtures', () => {
  const accepted = cases.filter(({ verdict }) => verdict === 'accept')
  const rejected = cases.filter(({ verdict }) => verdict === 'reject')

  test.each(accepted)('accepts $kind $name', async (one) => {
    const { code, stderr, object } = await verdictOf(one)
    expect([code, stderr, object.ok]).toEqual([0, '', true])
    const tensors = object.tensors as { name: string }[] | undefined
    if (one.tensors !== undefined) expect(tensors!.map(({ name }) => name)).toEqual(one.tensors)
    if (one.kind !== 'config') expect(tensors).toBeDefined()
  })

  test.each(rejected)('refuses $kind $name', async (one) => {
    const { code, stderr, object } = await verdictOf(one)
    expect([code, stderr, object.ok]).toEqual([3, '', false])
    const { error } = object as { error: Record<string, unknown> }
    expect(Object.keys(error)).toEqual(['code', 'file', 'tensor', 'offset', 'message'])
    expect(error.code).toMatch(/^ERR_(SAFETENSORS|K3_CONFIG)_/)
    expect(error.file).toContain(path.basename(one.path))
    if (one.kind === 'st') expect(typeof error.offset).toBe('number')
    const text = await k3(['inspect', FLAG[one.kind], fixture(`malformed/${one.path}`)])
    expect([text.code, text.stdout]).toEqual([3, ''])
    expect(text.stderr).toBe(`k3: ${String(error.message)} [${String(error.code)}]\n`)
  })

  test('gives a code of its own to every kind of fault in a header', async () => {
    const codes = new Set<unknown>()
    for (const one of rejected.filter(({ kind }) => kind === 'st')) {
      codes.add(((await verdictOf(one)).object.error as { code: string }).code)
    }
    expect(codes.size).toBeGreaterThan(25)
  })

  test.each(cases.filter(({ kind }) => kind === 'config'))(
    'gives $name the same verdict in a folder',
    async (one) => {
      const dir = scratchFolder()
      copyFileSync(fixture(`malformed/${one.path}`), path.join(dir, 'config.json'))
      const { code, stdout } = await k3(['inspect', '--model', dir, '--json'])
      const { error } = JSON.parse(stdout) as { error: { code: string } }
      expect(code).toBe(3)
      const missing = error.code === 'ERR_SAFETENSORS_NO_FILES'
      expect(missing).toBe(one.verdict === 'accept')
    }
  )
})

describe('k3 inspect', () => {
  test('describes the demo model unless told otherwise', async () => {
    const object = await k3Object(['inspect', '--json'])
    expect(object).toEqual(await k3Object(['inspect', '--json', '--model', modelDir]))
    expect(object).toMatchObject({
      ok: true,
      dir: modelDir,
      records: 1492,
      tensor_bytes: 7_608_128,
      file_bytes: 7_811_632,
      notices: [],
      census: { F32: { records: 66, bytes: 66_432 }, U8: { records: 1152 } },
      architecture: { layerCount: 13, moe: { expertCount: 16, topK: 4 } }
    })
    const { layers, shards } = object as { layers: object[]; shards: object[] }
    expect([layers.length, shards.length]).toEqual([13, 6])
    expect(layers[3]).toEqual({
      index: 3,
      mixer: 'mla',
      ffn: 'moe',
      starts_block: false,
      trunk_bytes: 345_376,
      expert_bytes: 104_448
    })
    expect(shards[0]).toMatchObject({ file: 'model-00001-of-000006.safetensors', tensors: 271 })
  })

  test('prints tables without --json', async () => {
    const { code, stdout, stderr } = await k3(['inspect'])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('1,492 tensors in 6 shards')
    expect(stdout).toMatch(/^ +12 {2}mla {4}moe/m)
    expect(stdout).toMatch(/^U8 +1,152 +1,253,376$/m)
    expect(stdout).toMatch(/^model-00006-of-000006\.safetensors +\d+/m)
    expect(stdout).toMatch(/^moe\.expertCount +16$/m)
  })

  test('lists the tensors of any safetensors file', async () => {
    const file = fixture('malformed/st/ok-escaped-nul-name.safetensors')
    expect(await k3Object(['inspect', '--file', file, '--json'])).toMatchObject({
      ok: true,
      file,
      tensors: [{ name: 'a\0b', dtype: 'F32', shape: [1], bytes: 4, offset: expect.any(Number) }]
    })
    const { stdout } = await k3(['inspect', '--file', file])
    expect(stdout).toContain('a\\u0000b')
    expect(stdout).not.toContain('\0')
    const metadata = fixture('malformed/st/ok-metadata-strings.safetensors')
    expect(await k3Object(['inspect', '--file', metadata, '--json'])).toMatchObject({
      metadata: expect.any(Object)
    })
  })

  test('checks index and shards of a folder without config.json, and says so', async () => {
    const dir = fixture('malformed/index/index-total-size-wrong')
    const object = await k3Object(['inspect', '--model', dir, '--json'])
    expect(object).toMatchObject({ ok: true, architecture: null, records: 2 })
    expect(object.notices).toEqual([
      expect.stringContaining('no config.json'),
      expect.stringContaining('total_size')
    ])
    const { stdout } = await k3(['inspect', '--model', dir])
    expect(stdout).toContain('notice: there is no config.json')
    expect(stdout).toContain('model-00002-of-000002.safetensors')
  })

  test('describes one config.json', async () => {
    const { stdout } = await k3(['inspect', '--config', path.join(modelDir, 'config.json')])
    expect(stdout).toMatch(/^layerCount +13$/m)
    expect(
      await k3Object(['inspect', '--config', path.join(modelDir, 'config.json'), '--json'])
    ).toMatchObject({
      ok: true,
      architecture: { hiddenSize: 160 }
    })
  })

  test('names the tensor that does not fit the configuration', async () => {
    const dir = path.join(scratchFolder(), 'model')
    cpSync(modelDir, dir, { recursive: true })
    const config = path.join(dir, 'config.json')
    writeFileSync(config, readFileSync(config, 'utf8').replace('"num_experts": 16', '"num_experts": 17'))
    const { error } = (await k3Object(['inspect', '--model', dir, '--json'])) as {
      error: Record<string, string>
    }
    expect(error.code).toBe('ERR_K3_TENSORS')
    expect(error.tensor).toContain('block_sparse_moe')
  })

  test.each([
    ['a folder that is not there', ['--model', '/nowhere/at/all'], 'ERR_SAFETENSORS_IO'],
    ['a file that is not there', ['--file', '/nowhere/at/all'], 'ERR_SAFETENSORS_IO'],
    ['a folder in place of a file', ['--file', modelDir], 'ERR_SAFETENSORS_NOT_A_FILE'],
    ['a config.json that is not there', ['--config', '/nowhere/at/all'], 'ERR_K3_CONFIG_FILE'],
    ['whole shards with --headers', ['--headers', '--model', modelDir], 'ERR_SAFETENSORS_NOT_HEADER_ONLY']
  ])('refuses %s', async (_, flags, code) => {
    const outcome = await k3(['inspect', ...flags, '--json'])
    expect(outcome.code).toBe(3)
    expect(JSON.parse(outcome.stdout)).toMatchObject({ ok: false, error: { code } })
  })

  test('refuses a config.json that is not UTF-8', async () => {
    const file = path.join(scratchFolder(), 'config.json')
    writeFileSync(file, Buffer.from([0x7b, 0xff]))
    expect(await k3Object(['inspect', '--config', file, '--json'])).toMatchObject({
      error: { code: 'ERR_K3_CONFIG_JSON', file }
    })
  })

  test.each([
    ['two things at once', ['--model', 'a', '--file', 'b']],
    ['two files at once', ['--config', 'a', '--file', 'b']],
    ['--headers without a folder', ['--headers']],
    ['an argument', ['folder']]
  ])('takes %s as a usage error', async (_, flags) => {
    expect((await k3(['inspect', ...flags])).code).toBe(2)
  })

  test('refuses a folder with an emptied shard', async () => {
    const dir = path.join(scratchFolder(), 'index')
    cpSync(fixture('malformed/index/index-ok'), dir, { recursive: true })
    writeFileSync(path.join(dir, 'model-00002-of-000002.safetensors'), '')
    expect(await k3Object(['inspect', '--model', dir, '--json'])).toMatchObject({
      ok: false,
      error: { code: 'ERR_SAFETENSORS_LENGTH_TRUNCATED' }
    })
  })
})
