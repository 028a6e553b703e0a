import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { fixture, k3, k3Object, scratchFolder } from './k3.js'

const tiny = (dir: string, ...flags: string[]): string[] => [
  ...['synth', '--preset', 'tiny', '--seed', '5', '--out', dir],
  ...flags
]

const hashes = (dir: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(dir).map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(path.join(dir, name)))
        .digest('hex')
    ])
  )

const expectedHashes = (): Record<string, string> => {
  const { checkpoint } = JSON.parse(readFileSync(fixture('expected/tiny-seed5.json'), 'utf8')) as {
    checkpoint: { files: Record<string, { sha256: string }> }
  }
  return Object.fromEntries(Object.entries(checkpoint.files).map(([name, { sha256 }]) => [name, sha256]))
}

describe('k3 synth', { timeout: 60_000 }, () => {
  test('writes the files of a preset, and says so on stderr', async () => {
    const dir = path.join(scratchFolder(), 'made', 'on', 'the', 'way')
    const { code, stdout, stderr } = await k3(tiny(dir))
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr).toMatch(
      /^k3: .*: 14 shards of a model of 2,068 tensors and 11,175,472 bytes, in [\d.]+ s\n$/
    )
    expect(hashes(dir)).toEqual(expectedHashes())
  })

  test.each(['1', '3'])('writes the same files with %s threads', async (threads) => {
    const dir = scratchFolder()
    expect(await k3(tiny(dir, '--threads', threads, '--quiet'))).toMatchObject({ code: 0, stderr: '' })
    expect(hashes(dir)).toEqual(expectedHashes())
  })

  test('shows progress on a terminal', async () => {
    const { stderr } = await k3(tiny(scratchFolder()), { isTTY: true })
    expect(stderr).toMatch(/\r0\.\d\d of 0\.01 GB, [\d.]+ GB\/s, \d+ s left/)
  })

  test('prints one object with --json', async () => {
    const dir = scratchFolder()
    expect(await k3Object(tiny(dir, '--json'))).toEqual({
      dir,
      preset: 'tiny',
      seed: '5',
      headers_only: false,
      shards: 14,
      tensors: 2068,
      tensor_bytes: 10_894_592,
      file_bytes: 11_175_472
    })
  })

  test('replaces fields with --set, given once or often', async () => {
    const [one, two] = [scratchFolder(), scratchFolder()]
    await k3(tiny(one, '--set', 'num_experts=8', 'num_hidden_layers=3'))
    await k3(tiny(two, '--set', 'num_experts=8', '--set', 'num_hidden_layers=3'))
    expect(hashes(one)).toEqual(hashes(two))
    expect(await k3Object(['inspect', '--model', one, '--json'])).toMatchObject({
      architecture: { layerCount: 3, moe: { expertCount: 8 } }
    })
  })

  test('replaces the layer pattern with --set full_attn_layers', async () => {
    const dir = scratchFolder()
    await k3(tiny(dir, '--set', 'num_hidden_layers=3', '--set', 'full_attn_layers=2,3', '--headers-only'))
    const { layers } = await k3Object(['inspect', '--headers', '--model', dir, '--json'])
    expect((layers as { mixer: string }[]).map(({ mixer }) => mixer)).toEqual(['kda', 'mla', 'mla'])
  })

  test('puts everything into one shard with --single, which gives the same logits', async () => {
    const dir = scratchFolder()
    expect(await k3Object(tiny(dir, '--single', '--json'))).toMatchObject({ shards: 1 })
    expect(readdirSync(dir)).toContain('model-00001-of-000001.safetensors')
    const expected = fixture('expected/tiny-seed5.json')
    expect((await k3(['self-test', '--threads', '1', '--model', dir, '--expected', expected])).code).toBe(0)
  })

  test('writes one shard with --shard', async () => {
    const dir = scratchFolder()
    await k3(tiny(dir, '--shard', '2'))
    const names = ['config.json', 'model-00002-of-000014.safetensors', 'model.safetensors.index.json']
    expect(readdirSync(dir)).toEqual(names)
  })

  test('makes other files from another seed', async () => {
    const dir = scratchFolder()
    await k3(['synth', '--preset', 'tiny', '--seed', '18446744073709551615', '--out', dir])
    const [found, known] = [hashes(dir), expectedHashes()]
    expect(found['config.json']).toBe(known['config.json'])
    expect(found['model-00001-of-000014.safetensors']).not.toBe(known['model-00001-of-000014.safetensors'])
  })

  test.each([
    ['no preset', ['--seed', '5', '--out', 'x'], 2],
    ['no seed', ['--preset', 'tiny', '--out', 'x'], 2],
    ['no folder', ['--preset', 'tiny', '--seed', '5'], 2],
    ['an empty folder name', ['--preset', 'tiny', '--seed', '5', '--out', ''], 2],
    ['an unknown preset', ['--preset', 'huge', '--seed', '5', '--out', 'x'], 2],
    ['a seed beyond 64 bits', ['--preset', 'tiny', '--seed', '18446744073709551616', '--out', 'x'], 2]
  ])('refuses %s', async (_, flags, code) => {
    expect(await k3(['synth', ...flags])).toMatchObject({ code, stdout: '' })
  })

  test.each([
    ['an unknown field', ['--set', 'width=3'], 'ERR_SYNTH_FIELD', 2],
    ['a value that is none', ['--set', 'num_experts=many'], 'ERR_SYNTH_VALUE', 2],
    ['a geometry that cannot be', ['--set', 'num_experts_per_token=25'], 'ERR_SYNTH_GEOMETRY', 2],
    ['more experts than config.json may state', ['--set', 'num_experts=999999999'], 'ERR_USAGE', 2],
    ['a field that is set twice', ['--set', 'num_experts=8', '--set', 'num_experts=8'], 'ERR_SYNTH_FIELD', 2],
    ['a shard that does not exist', ['--shard', '15'], 'ERR_SYNTH_SHARD', 2],
    ['a disk that is too small', ['--preset', 'full'], 'ERR_SYNTH_SPACE', 4]
  ])('refuses %s before it writes', async (_, flags, name, code) => {
    const dir = scratchFolder()
    const outcome = await k3(tiny(dir, ...flags))
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(name)])
    expect(readdirSync(dir)).toEqual([])
  })

  test('fails for a folder it cannot make and for one that holds another model', async () => {
    const dir = scratchFolder()
    writeFileSync(path.join(dir, 'config.json'), '{}')
    expect(await k3(tiny(dir))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('ERR_SYNTH_OCCUPIED')
    })
    const file = path.join(dir, 'config.json')
    for (const out of [file, path.join(file, 'out'), '/proc/out/of/it']) {
      expect(await k3(tiny(out))).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('ERR_SYNTH_WRITE')
      })
    }
  })

  test('names a file it cannot look at', async () => {
    const dir = scratchFolder()
    const file = path.join(dir, 'config.json')
    symlinkSync(file, file)
    const { code, stderr } = await k3(tiny(dir))
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(`cannot look at ${file}: .*ELOOP.*ERR_SYNTH_WRITE`)
    ])
  })

  test.each(['config.json', 'model-00003-of-000014.safetensors'])(
    'refuses a folder in which %s is no file',
    async (name) => {
      const dir = scratchFolder()
      mkdirSync(path.join(dir, name))
      expect(await k3(tiny(dir))).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(`${name} is no regular file.*ERR_SYNTH_OCCUPIED`)
      })
      expect(readdirSync(dir)).toEqual([name])
    }
  )
})
