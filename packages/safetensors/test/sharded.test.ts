import { mkdirSync, readFileSync, symlinkSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openSharded } from '../src/folder.ts'
import { parseIndex } from '../src/index-json.ts'
import { codeOf, entry, errorOf, fileOf, INDEX, indexOf, shardOf, temporaryFolder } from './cases.ts'

const name = (number: number, total: number) =>
  `model-${String(number).padStart(5, '0')}-of-${String(total).padStart(6, '0')}.safetensors`
const [S1, S2, S3] = [name(1, 3), name(2, 3), name(3, 3)] as const
const three = { [S1]: shardOf('a', 'b'), [S2]: shardOf('c'), [S3]: shardOf('d') }
const weights = { a: S1, b: S1, c: S2, d: S3 }

describe('with an index', () => {
  test('says shard, file position, dtype and shape of every tensor', async () => {
    const dir = temporaryFolder({ ...three, [INDEX]: indexOf(weights, 16) })
    const checkpoint = await openSharded(dir)
    expect(checkpoint.notices).toEqual([])
    expect([checkpoint.size, checkpoint.tensorBytes]).toEqual([4, 16])
    expect(checkpoint.shards.map((shard) => shard.name)).toEqual([S1, S2, S3])
    expect(checkpoint.fileBytes).toBe(three[S1]!.length + three[S2]!.length + three[S3]!.length)
    const b = checkpoint.get('b')
    expect(b).toMatchObject({ shard: 0, dtype: 'F32', shape: [1], begin: 4, end: 8, byteLength: 4 })
    expect(b.fileOffset).toBe(three[S1]!.length - 4)
    expect(checkpoint.shards[b.shard]!.path).toBe(join(dir, S1))
    expect([...checkpoint].map((tensor) => tensor.name)).toEqual(['a', 'b', 'c', 'd'])
    expect([checkpoint.has('d'), checkpoint.has('e')]).toEqual([true, false])
    expect(await codeOf(() => checkpoint.get('e'))).toBe('ERR_SAFETENSORS_TENSOR_NOT_FOUND')
  })

  test('finds what the folder lacks in others, the first of them first', async () => {
    const dir = temporaryFolder({ [S1]: three[S1]!, [INDEX]: indexOf(weights, 16) })
    const second = temporaryFolder({ [S1]: three[S1]!, [S2]: three[S2]! })
    const third = temporaryFolder({ ...three, [INDEX]: indexOf(weights, 16) })
    const { shards } = await openSharded(dir, { also: [second, third] })
    expect(shards.map(({ path }) => path)).toEqual([join(dir, S1), join(second, S2), join(third, S3)])
    const error = await errorOf(() => openSharded(dir, { also: [second] }))
    expect([error.code, error.file]).toEqual(['ERR_SAFETENSORS_SHARD_MISSING', join(dir, S3)])
  })

  test('names every shard that is not on disk', async () => {
    const dir = temporaryFolder({ ...three, [INDEX]: indexOf(weights) })
    unlinkSync(join(dir, S2))
    unlinkSync(join(dir, S3))
    const error = await errorOf(() => openSharded(dir))
    expect([error.code, error.file]).toEqual(['ERR_SAFETENSORS_SHARD_MISSING', join(dir, S2)])
    expect(error.message).toContain(`2 of 3 shards are not there: "${S2}", "${S3}"`)
  })

  test('names the tensors that no shard holds', async () => {
    const dir = temporaryFolder({ ...three, [INDEX]: indexOf({ ...weights, 'x.weight_scale': S2, y: S3 }) })
    const error = await errorOf(() => openSharded(dir))
    expect([error.code, error.tensor]).toEqual(['ERR_SAFETENSORS_TENSOR_MISSING', 'x.weight_scale'])
    expect(error.message).toContain('"x.weight_scale", "y"')
  })

  test('a tensor in another shard than listed is misplaced', async () => {
    for (const wrong of [S1, S3]) {
      const dir = temporaryFolder({ ...three, [INDEX]: indexOf({ ...weights, c: wrong }) })
      const error = await errorOf(() => openSharded(dir))
      // S2 is named by no entry and therefore not opened
      expect(error.code).toBe('ERR_SAFETENSORS_TENSOR_MISSING')
      const moved = temporaryFolder({
        ...three,
        [S2]: shardOf('c', 'e'),
        [INDEX]: indexOf({ ...weights, c: wrong, e: S2 })
      })
      expect(await codeOf(() => openSharded(moved))).toBe('ERR_SAFETENSORS_TENSOR_MISPLACED')
    }
  })

  test('a second copy is refused, listed or not, before or after the listed one', async () => {
    for (const shards of [
      { [S1]: shardOf('a', 'b', 'd') },
      { [S3]: shardOf('d', 'a') },
      { [S1]: shardOf('a', 'b', 'u'), [S3]: shardOf('d', 'u') }
    ]) {
      const dir = temporaryFolder({ ...three, ...shards, [INDEX]: indexOf(weights) })
      expect(await codeOf(() => openSharded(dir))).toBe('ERR_SAFETENSORS_TENSOR_IN_TWO_SHARDS')
    }
  })

  test('a tensor only the shard knows is left out, with a notice', async () => {
    const dir = temporaryFolder({ ...three, [INDEX]: indexOf({ a: S1, c: S2, d: S3 }, 12) })
    const checkpoint = await openSharded(dir)
    expect([...checkpoint.names()]).toEqual(['a', 'c', 'd'])
    expect(checkpoint.tensorBytes).toBe(12)
    expect(checkpoint.shards[0]!.tensors.has('b')).toBe(true)
    expect(checkpoint.notices.map(({ code, tensor, file }) => [code, tensor, file])).toEqual([
      ['ERR_SAFETENSORS_INDEX_UNLISTED', 'b', join(dir, S1)]
    ])
  })

  test('files the index does not name are left out, with a notice each', async () => {
    const stray = { '._model.safetensors': 'x', 'model-copy.safetensors': shardOf('a') }
    const checkpoint = await openSharded(temporaryFolder({ ...three, ...stray, [INDEX]: indexOf(weights) }))
    expect(checkpoint.size).toBe(4)
    expect(checkpoint.notices.map(({ code, file }) => [code, basename(file!)]).sort()).toEqual([
      ['ERR_SAFETENSORS_STRAY_FILE', '._model.safetensors'],
      ['ERR_SAFETENSORS_STRAY_FILE', 'model-copy.safetensors']
    ])
  })

  test.each([17, 16.5, '16', -16, 1e300])('total_size %j is noticed, not refused', async (totalSize) => {
    const { notices } = await openSharded(temporaryFolder({ ...three, [INDEX]: indexOf(weights, totalSize) }))
    expect(notices.map(({ code }) => code)).toEqual(['ERR_SAFETENSORS_TOTAL_SIZE'])
  })

  test.each(['../x', '/x', 'sub/x', 'sub\\x', 'C:x', '..', '.', '', 'x\0y', '%2e%2e/x'])(
    'shard name %j is not followed',
    async (shard) => {
      const dir = temporaryFolder({ ...three, [INDEX]: indexOf({ ...weights, b: shard }) })
      const error = await errorOf(() => openSharded(dir))
      expect([error.code, error.tensor]).toEqual(['ERR_SAFETENSORS_INDEX_SHARD_NAME', 'b'])
    }
  )

  test('shards may be links, as in the cache of a downloader', async () => {
    const blobs = temporaryFolder({ blob: shardOf('a') })
    const dir = temporaryFolder({ [INDEX]: indexOf({ a: 'model.safetensors' }) })
    symlinkSync(join(blobs, 'blob'), join(dir, 'model.safetensors'))
    expect((await openSharded(dir)).has('a')).toBe(true)
  })

  test('a folder under a shard name is no shard', async () => {
    const dir = temporaryFolder({ [INDEX]: indexOf({ a: 'model.safetensors' }) })
    mkdirSync(join(dir, 'model.safetensors'))
    expect(await codeOf(() => openSharded(dir))).toBe('ERR_SAFETENSORS_NOT_A_FILE')
  })

  test('an index of another stem counts, two of them are ambiguous', async () => {
    const dir = temporaryFolder({ ...three, 'other.safetensors.index.json': indexOf({ a: S1, b: S1 }) })
    expect((await openSharded(dir)).size).toBe(2)
    writeFileSync(join(dir, `._${INDEX}`), '')
    expect((await openSharded(dir)).size).toBe(2)
    writeFileSync(join(dir, INDEX), indexOf(weights))
    expect(await codeOf(() => openSharded(dir))).toBe('ERR_SAFETENSORS_INDEX_AMBIGUOUS')
  })

  test('an index above its limit is refused by its size alone', async () => {
    const dir = temporaryFolder({ [INDEX]: '{' })
    truncateSync(join(dir, INDEX), 256 * 1024 * 1024 + 1)
    expect(await codeOf(() => openSharded(dir))).toBe('ERR_SAFETENSORS_INDEX_TOO_LARGE')
  })
})

describe('parseIndex', () => {
  const code = (text: string) => codeOf(() => parseIndex(Buffer.from(text), 'x'))

  test.each([
    ['', 'INDEX_TYPE'],
    ['[]', 'INDEX_TYPE'],
    ['null', 'INDEX_TYPE'],
    ['\ufeff{}', 'INDEX_TYPE'],
    ['{}', 'INDEX_NO_WEIGHT_MAP'],
    ['{"weight_map":null}', 'INDEX_WEIGHT_MAP_TYPE'],
    ['{"weight_map":{"a":null}}', 'INDEX_SHARD_TYPE'],
    ['{"weight_map":{"a":["x"]}}', 'INDEX_SHARD_TYPE'],
    ['{"weight_map":{},"weight_map":{}}', 'DUPLICATE_MEMBER'],
    ['{"metadata":{"k":1,"k":1},"weight_map":{}}', 'DUPLICATE_MEMBER'],
    ['{"weight_map":{"a":"x"}', 'JSON_TRUNCATED'],
    ['{"weight_map":{"a":"x"}}{}', 'JSON_SYNTAX'],
    ['{"weight_map":{"a":"x",}}', 'JSON_SYNTAX'],
    ['{"weight_map":{"a":"x\\q"}}', 'JSON_STRING'],
    ['{"weight_map":{"a":"x","a":"x"}}', 'INDEX_DUPLICATE'],
    ['{"weight_map":{"b":"x","a":"x","b":"y"}}', 'INDEX_DUPLICATE'],
    ['{"weight_map":{"b":"x","a":"x","c":"y","d":"y","\\u0063":"x"}}', 'INDEX_DUPLICATE'],
    [`{"weight_map":{"a":"x"},"k":${'['.repeat(130)}}`, 'JSON_DEPTH']
  ])('refuses %j as %s', async (text, expected) => {
    expect(await code(text)).toBe(`ERR_SAFETENSORS_${expected}`)
  })

  test('names may come in any order and shards may alternate', () => {
    const { shards } = parseIndex(
      Buffer.from(' {"weight_map":{"c":"y","a":"x","b":"y","__proto__":"x"}}\n'),
      'x'
    )
    expect([...shards]).toEqual([
      ['y', ['c', 'b']],
      ['x', ['a', '__proto__']]
    ])
  })

  test('metadata that is no object is left alone', () => {
    expect(parseIndex(Buffer.from('{"metadata":null,"weight_map":{}}'), 'x').totalSize).toBeNull()
  })

  test('more than 99,999 shards are refused', async () => {
    const entries = Array.from({ length: 100_000 }, (_, i) => `"t${i}":"s${i}"`)
    expect(await code(`{"weight_map":{${entries.join()}}}`)).toBe('ERR_SAFETENSORS_TOO_MANY_SHARDS')
  })
})

describe('without an index', () => {
  test('numbered shards are joined', async () => {
    const checkpoint = await openSharded(temporaryFolder(three))
    expect([...checkpoint.names()]).toEqual(['a', 'b', 'c', 'd'])
    expect(checkpoint.get('d').shard).toBe(2)
  })

  test('one file is a checkpoint', async () => {
    expect((await openSharded(temporaryFolder({ 'model.safetensors': shardOf('a') }))).size).toBe(1)
  })

  test('files without numbers are all of them, and may not repeat a tensor', async () => {
    const dir = temporaryFolder({ 'b.safetensors': shardOf('b'), 'a.safetensors': shardOf('a') })
    expect([...(await openSharded(dir)).names()]).toEqual(['a', 'b'])
    writeFileSync(join(dir, 'copy.safetensors'), shardOf('a'))
    const error = await errorOf(() => openSharded(dir))
    expect([error.code, error.tensor]).toEqual(['ERR_SAFETENSORS_TENSOR_IN_TWO_SHARDS', 'a'])
    expect(error.message).toContain('"a.safetensors"')
  })

  test('all missing numbers are named', async () => {
    const dir = temporaryFolder({ [name(2, 4)]: shardOf('a') })
    const error = await errorOf(() => openSharded(dir))
    expect(error.code).toBe('ERR_SAFETENSORS_SHARD_MISSING')
    expect(error.message).toContain(
      `3 of 4 shards are not there: "${name(1, 4)}", "${name(3, 4)}", "${name(4, 4)}"`
    )
  })

  test.each([
    'model-copy.safetensors',
    name(4, 3),
    name(0, 3),
    name(1, 4),
    'x-00001-of-000003.safetensors',
    'model-1-of-000003.safetensors'
  ])('a stray %s beside numbered shards is refused', async (stray) => {
    const error = await errorOf(() => openSharded(temporaryFolder({ ...three, [stray]: shardOf('z') })))
    expect(error.code).toBe('ERR_SAFETENSORS_STRAY_FILE')
  })

  test('AppleDouble files are left out, with a notice', async () => {
    const { size, notices } = await openSharded(temporaryFolder({ ...three, [`._${S1}`]: 'attributes' }))
    expect([size, notices.map(({ code, file }) => [code, basename(file!)])]).toEqual([
      4,
      [['ERR_SAFETENSORS_STRAY_FILE', `._${S1}`]]
    ])
  })

  test('a number beyond the limit is refused before its gaps are counted', async () => {
    const dir = temporaryFolder({ 'model-00001-of-999999999.safetensors': shardOf('a') })
    expect(await codeOf(() => openSharded(dir))).toBe('ERR_SAFETENSORS_TOO_MANY_SHARDS')
  })

  test('an empty or absent folder is named', async () => {
    const dir = temporaryFolder({ 'config.json': '{}', '._x.safetensors': '' })
    expect(await errorOf(() => openSharded(dir))).toMatchObject({
      code: 'ERR_SAFETENSORS_NO_FILES',
      file: dir
    })
    expect(await codeOf(() => openSharded(join(dir, 'absent')))).toBe('ERR_SAFETENSORS_IO')
  })
})

describe('headersOnly', () => {
  const header = fileOf(
    `{"a":${entry('F32', [1000, 1000], 0, 4_000_000)},"b":${entry('U8', [3], 4_000_000, 4_000_003)}}`
  )
  const options = { headersOnly: true }

  test('reports the sizes the files would have', async () => {
    const checkpoint = await openSharded(temporaryFolder({ 'model.safetensors': header }), options)
    expect(checkpoint.tensorBytes).toBe(4_000_003)
    expect(checkpoint.fileBytes).toBe(header.length + 4_000_003)
    expect(checkpoint.shards[0]!.tensors.fileBytes).toBe(header.length + 4_000_003)
  })

  test('wants exactly 8 + N bytes', async () => {
    const dir = temporaryFolder({ 'model.safetensors': Buffer.concat([header, Buffer.of(0)]) })
    expect(await codeOf(() => openSharded(dir, options))).toBe('ERR_SAFETENSORS_NOT_HEADER_ONLY')
    truncateSync(join(dir, 'model.safetensors'), header.length - 1)
    expect(await codeOf(() => openSharded(dir, options))).toBe('ERR_SAFETENSORS_HEADER_TRUNCATED')
  })

  test('still checks the ranges against each other', async () => {
    const gap = fileOf(`{"a":${entry('F32', [1], 0, 4)},"b":${entry('F32', [1], 8, 12)}}`)
    expect(await codeOf(() => openSharded(temporaryFolder({ 'model.safetensors': gap }), options))).toBe(
      'ERR_SAFETENSORS_GAP'
    )
  })

  test('without the option such a folder is truncated', async () => {
    const dir = temporaryFolder({ 'model.safetensors': header })
    expect(await codeOf(() => openSharded(dir))).toBe('ERR_SAFETENSORS_DATA_TRUNCATED')
  })

  test('every change of one byte is refused', async () => {
    const dir = temporaryFolder({
      [S1]: fileOf(`{"m.w":${entry('BF16', [64, 7], 0, 896)}}   `),
      [INDEX]: indexOf({ 'm.w': S1 })
    })
    const path = join(dir, S1)
    const whole = readFileSync(path)
    expect((await openSharded(dir, options)).tensorBytes).toBe(896)
    for (let at = 0; at < whole.length; at++) {
      for (const flip of [0x01, 0x10, 0x20]) {
        const bytes = Buffer.from(whole)
        bytes[at]! ^= flip
        writeFileSync(path, bytes)
        await errorOf(() => openSharded(dir, options))
      }
    }
  })
})
