import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { openFile, readExactly } from '../src/file.ts'
import { codeOf, entry, errorOf, fileOf, shardOf, temporaryFolder } from './cases.ts'

/** A file of `bytes` bytes that begins with `start`; the rest is a hole. */
function sparse(path: string, start: Uint8Array, bytes: number): string {
  writeFileSync(path, start)
  truncateSync(path, bytes)
  return path
}

describe('openFile', () => {
  test('reads a tensor into a buffer that any typed array fits on', async () => {
    const dir = temporaryFolder()
    const path = join(dir, 'x.safetensors')
    const values = Float32Array.of(1, -2, 3.5)
    const json = `{"w":${entry('F32', [3], 1, 13)},"b":${entry('U8', [1], 0, 1)}} `
    writeFileSync(path, fileOf(json, Buffer.concat([Buffer.of(7), Buffer.from(values.buffer)])))
    await using file = await openFile(path)
    expect(file.tensors.get('w').fileOffset % 4).not.toBe(0)
    expect(new Float32Array((await file.read('w')).buffer)).toEqual(values)
    expect([...(await file.read('b'))]).toEqual([7])
    expect(await codeOf(() => file.read('W'))).toBe('ERR_SAFETENSORS_TENSOR_NOT_FOUND')
  })

  test('opens every golden op file of this repository', async () => {
    const ops = fileURLToPath(new URL('../../../fixtures/ops/', import.meta.url))
    const names = readdirSync(ops).filter((name) => name.endsWith('.safetensors'))
    expect(names.length).toBeGreaterThan(10)
    for (const name of names) {
      await using file = await openFile(join(ops, name))
      expect(file.tensors.fileBytes).toBe(statSync(join(ops, name)).size)
    }
  })

  test('closes once, however often it is asked to', async () => {
    const file = await openFile(join(temporaryFolder({ 'a.safetensors': shardOf('a') }), 'a.safetensors'))
    await file.close()
    await file.close()
    expect(await codeOf(() => file.read('a'))).toBe('ERR_SAFETENSORS_IO')
  })

  test('a file cut by one byte or by half names have, need and the fix', async () => {
    const whole = fileOf(`{"a":${entry('U8', [5000], 0, 5000)}}`, 5000)
    const dir = temporaryFolder({
      one: whole.subarray(0, whole.length - 1),
      half: whole.subarray(0, whole.length / 2),
      head: whole.subarray(0, 20)
    })
    for (const [name, code] of [
      ['one', 'DATA'],
      ['half', 'DATA'],
      ['head', 'HEADER']
    ] as const) {
      const error = await errorOf(() => openFile(join(dir, name)))
      expect([error.code, error.file]).toEqual([`ERR_SAFETENSORS_${code}_TRUNCATED`, join(dir, name)])
      expect(error.message).toContain(String(statSync(join(dir, name)).size))
      expect(error.message).toMatch(/fetch .*again/)
    }
  })

  test('what is no regular file is refused, a pipe without waiting for it', async () => {
    const dir = temporaryFolder()
    mkdirSync(join(dir, 'folder.safetensors'))
    execFileSync('mkfifo', [join(dir, 'pipe.safetensors')])
    for (const name of ['folder.safetensors', 'pipe.safetensors']) {
      expect(await codeOf(() => openFile(join(dir, name)))).toBe('ERR_SAFETENSORS_NOT_A_FILE')
    }
    const error = await errorOf(() => openFile(join(dir, 'absent.safetensors')))
    expect([error.code, (error.cause as NodeJS.ErrnoException).code]).toEqual([
      'ERR_SAFETENSORS_IO',
      'ENOENT'
    ])
  })

  test('a file that shrinks while open is noticed', async () => {
    const path = join(temporaryFolder(), 'x.safetensors')
    writeFileSync(path, fileOf(`{"a":${entry('U8', [100], 0, 100)}}`, 100))
    await using file = await openFile(path)
    truncateSync(path, file.tensors.fileBytes - 1)
    const error = await errorOf(() => file.read('a'))
    expect([error.code, error.file, error.offset]).toEqual([
      'ERR_SAFETENSORS_READ_EOF',
      path,
      file.tensors.fileBytes - 1
    ])
  })
})

describe('limits', () => {
  test('a header of exactly 100,000,000 bytes is read', async () => {
    const json = Buffer.alloc(100_000_000, ' ')
    json.write(`{"a":${entry('F32', [1], 0, 4)}}`)
    const path = join(temporaryFolder(), 'x.safetensors')
    writeFileSync(path, fileOf(json, 4))
    await using file = await openFile(path)
    expect(file.tensors.dataOffset).toBe(100_000_008)
  })

  test('a longer one is refused before memory is allocated for it', async () => {
    const dir = temporaryFolder()
    const claim = (bytes: bigint) => fileOf(`{"a":${entry('F32', [1], 0, 4)}}`, 0, bytes)
    const before = process.memoryUsage().arrayBuffers
    for (const [name, bytes] of [
      ['just', 100_000_001n],
      ['200MB', 200_000_000n],
      ['3TB', 3_000_000_000_000n]
    ] as const) {
      const path = sparse(join(dir, name), claim(bytes), Math.min(Number(bytes) + 12, 2 ** 40))
      expect(await codeOf(() => openFile(path))).toBe('ERR_SAFETENSORS_HEADER_TOO_LARGE')
    }
    const short = sparse(join(dir, 'short'), claim(99_999_999n), 50_000_000)
    expect(await codeOf(() => openFile(short))).toBe('ERR_SAFETENSORS_HEADER_TRUNCATED')
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000)
  })

  test('a length of file size minus 7 is one byte too long', async () => {
    const bytes = fileOf(`{"a":${entry('F32', [1], 0, 4)}}`, 4)
    bytes.writeBigUInt64LE(BigInt(bytes.length - 7))
    const path = join(temporaryFolder({ x: bytes }), 'x')
    expect(await codeOf(() => openFile(path))).toBe('ERR_SAFETENSORS_HEADER_TRUNCATED')
  })

  test('a tensor above 4 GiB opens, and is refused as one buffer', async () => {
    const bytes = 2 ** 32 + 1
    const start = fileOf(`{"a":${entry('U8', [bytes], 0, bytes)}}`)
    const path = sparse(join(temporaryFolder(), 'x'), start, start.length + bytes)
    await using file = await openFile(path)
    expect(file.tensors.get('a').byteLength).toBe(bytes)
    expect(await codeOf(() => file.read('a'))).toBe('ERR_SAFETENSORS_READ_TOO_LARGE')
  })
})

describe('readExactly', () => {
  const dripping = (handle: FileHandle) => ({
    close: () => handle.close(),
    read: (buffer: Uint8Array, at: number, length: number, position: number) =>
      handle.read(buffer, at, Math.min(length, 7), position)
  })

  test('continues after short reads', async () => {
    const content = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251))
    const path = join(temporaryFolder({ x: content }), 'x')
    const handle = await open(path)
    const file = { path, handle: dripping(handle) as FileHandle, bytes: 1000 }
    expect(Buffer.from(await readExactly(file, 3, 900))).toEqual(readFileSync(path).subarray(3, 903))
    expect(await codeOf(() => readExactly(file, 3, 1000))).toBe('ERR_SAFETENSORS_READ_EOF')
    await handle.close()
  })
})
