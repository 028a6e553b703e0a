import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { geometryOf } from '@k3/synth'
import { createPool } from '@k3/task-pool'
import { afterEach, describe, expect, test } from 'vitest'
import { layOut } from '../src/synth/layout.js'
import { writeCheckpoint } from '../src/synth/write-checkpoint.js'

const expectedDir = new URL('../../../fixtures/expected/', import.meta.url)
const folders: string[] = []

function folder(): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'k3-synth-'))
  folders.push(dir)
  return dir
}

afterEach(() => {
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true })
})

type Files = Record<string, { bytes: number; sha256: string }>

const expectedFiles = (name: string): Files =>
  JSON.parse(readFileSync(new URL(`${name}.json`, expectedDir), 'utf8')).checkpoint.files

const filesOf = (dir: string): Files =>
  Object.fromEntries(
    readdirSync(dir).map((name) => {
      const content = readFileSync(path.join(dir, name))
      return [name, { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') }]
    })
  )

describe('writeCheckpoint', { timeout: 60_000 }, () => {
  test.each([
    ['tiny', 5n, 'tiny-seed5'],
    ['tiny', 17n, 'tiny-seed17'],
    ['tiny-93', 4n, 'tiny-93-seed4'],
    ['tiny-93', 11n, 'tiny-93-seed11']
  ])('writes %s with seed %i as expected, byte for byte', async (preset, seed, name) => {
    const dir = folder()
    await writeCheckpoint(geometryOf(preset), seed, dir)
    expect(filesOf(dir)).toEqual(expectedFiles(name))
  })

  test('writes the same bytes through a pool and reports what it wrote', async () => {
    const dir = folder()
    await using pool = createPool({ threads: 3 })
    const seen: number[] = []
    const written = await writeCheckpoint(geometryOf('tiny'), 5n, dir, {
      pool,
      onProgress: (done, total) => seen.push(done, total)
    })
    expect(filesOf(dir)).toEqual(expectedFiles('tiny-seed5'))
    const shards = readdirSync(dir).filter((name) => name.endsWith('.safetensors'))
    expect(written.shards).toBe(14)
    expect(written.fileBytes).toBe(shards.reduce((sum, name) => sum + statSync(path.join(dir, name)).size, 0))
    expect(seen.at(-2)).toBe(seen.at(-1))
  })

  test('writes one shard of a model too large for the disk', async () => {
    const dir = folder()
    const names = ['config.json', 'model-00014-of-000014.safetensors', 'model.safetensors.index.json']
    await writeCheckpoint(geometryOf('tiny'), 5n, dir, { shard: 14 })
    const expected = expectedFiles('tiny-seed5')
    expect(filesOf(dir)).toEqual(Object.fromEntries(names.map((name) => [name, expected[name]])))
  })

  test('writes headers alone, the same as those of whole files', async () => {
    const [whole, headers] = [folder(), folder()]
    const complete = await writeCheckpoint(geometryOf('tiny'), 5n, whole)
    const written = await writeCheckpoint(geometryOf('tiny'), 5n, headers, { headersOnly: true })
    expect(readdirSync(headers)).toEqual(readdirSync(whole))
    for (const name of readdirSync(headers)) {
      const header = readFileSync(path.join(headers, name))
      expect(readFileSync(path.join(whole, name)).subarray(0, header.length).equals(header), name).toBe(true)
    }
    expect(written).toEqual(complete)
  })

  test('leaves nothing under a final name when it is stopped', async () => {
    const dir = folder()
    const controller = new AbortController()
    const stopped = writeCheckpoint(geometryOf('tiny', ['vocab_size=200000']), 5n, dir, {
      shard: 14,
      signal: controller.signal,
      onProgress: (done) => {
        if (done > 20e6) controller.abort(new Error('stopped by the test'))
      }
    })
    await expect(stopped).rejects.toThrow('stopped by the test')
    expect(readdirSync(dir)).toEqual([])
  })

  test('writes over an earlier run of the same geometry', async () => {
    const dir = folder()
    await writeCheckpoint(geometryOf('tiny'), 17n, dir)
    await writeCheckpoint(geometryOf('tiny'), 5n, dir)
    expect(filesOf(dir)).toEqual(expectedFiles('tiny-seed5'))
  })
})

describe('writeCheckpoint refuses', { timeout: 60_000 }, () => {
  test('a disk that is too small, before it writes', async () => {
    const dir = folder()
    const terabytes = ['num_hidden_layers=1', 'hidden_size=1048576', 'vocab_size=16777216']
    await expect(writeCheckpoint(geometryOf('tiny', terabytes), 1n, dir)).rejects.toMatchObject({
      code: 'ERR_SYNTH_SPACE',
      file: dir
    })
    expect(readdirSync(dir)).toEqual([])
  })

  test('the folder of another model', async () => {
    const dir = folder()
    writeFileSync(path.join(dir, 'config.json'), '{}')
    await expect(writeCheckpoint(geometryOf('tiny'), 1n, dir)).rejects.toMatchObject({
      code: 'ERR_SYNTH_OCCUPIED',
      file: path.join(dir, 'config.json')
    })
    rmSync(path.join(dir, 'config.json'))
    writeFileSync(path.join(dir, 'model-00003-of-000014.safetensors'), 'something precious')
    await expect(writeCheckpoint(geometryOf('tiny'), 1n, dir)).rejects.toMatchObject({
      code: 'ERR_SYNTH_OCCUPIED'
    })
    expect(readdirSync(dir)).toEqual(['model-00003-of-000014.safetensors'])
  })

  test('a folder that cannot be made and a shard that does not exist', async () => {
    const dir = folder()
    writeFileSync(path.join(dir, 'file'), '')
    const inFile = path.join(dir, 'file', 'out')
    await expect(writeCheckpoint(geometryOf('tiny'), 1n, inFile)).rejects.toMatchObject({
      code: 'ERR_SYNTH_WRITE'
    })
    await expect(writeCheckpoint(geometryOf('tiny'), 1n, dir, { shard: 15 })).rejects.toMatchObject({
      code: 'ERR_SYNTH_SHARD'
    })
  })
})

describe('layOut', () => {
  test('puts everything into one shard on request', () => {
    const { shards, tensorBytes } = layOut(geometryOf('tiny'), { single: true, vision: false })
    expect(shards.map(({ name }) => name)).toEqual(['model-00001-of-000001.safetensors'])
    expect(shards[0]!.dataBytes).toBe(tensorBytes)
    expect(shards[0]!.records.map(({ dtype }) => dtype).filter((d, i, all) => d !== all[i - 1])).toEqual([
      'F32',
      'BF16',
      'U8'
    ])
  })
})
