import { closeSync, existsSync, openSync, truncateSync, writeSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { allocRegion, backendInfo, openReader, paddedBytes } from '../src/index.js'
import { modesFor, patternFile, scratchFolder, withReader } from './scratch.js'

const folder = scratchFolder()
const page = 4096

const sparseFile = (marks: readonly number[], size: number) => {
  const file = path.join(folder, `sparse-${size}`)
  const descriptor = openSync(file, 'w')
  for (const offset of marks) writeSync(descriptor, Buffer.from(`<${offset}>`), 0, undefined, offset)
  closeSync(descriptor)
  truncateSync(file, size)
  return file
}

const marks = [2 ** 31 - 5, 2 ** 31 + 4096, 2 ** 32 - 3, 2 ** 32 + 40, 2 ** 36 + 1]
const sparse = sparseFile(marks, 2 ** 36 + 50)
const { file, content } = patternFile(folder, 'pattern', 5_000 * 517)

describe.each(modesFor(sparse))('with $backend, direct $direct, a reader', (options) => {
  it('reads at offsets around and beyond 2^31 and 2^32', async () => {
    await withReader([sparse], options, async (reader) => {
      using region = allocRegion(marks.length * 2 * page)
      const reads = marks.map((offset, i) => ({
        file: 0,
        offset,
        length: `<${offset}>`.length,
        region,
        at: 2 * page * i
      }))
      await reader.submit(reads).done
      for (const { offset, length, at } of reads)
        expect(Buffer.from(region.view(at + (offset % page), length)).toString()).toBe(`<${offset}>`)
    })
  })

  it('reads a batch of 5,000, many times its depth', async () => {
    await withReader([file], { ...options, depth: 8 }, async (reader) => {
      using region = allocRegion(5_000 * 2 * page)
      const reads = Array.from({ length: 5_000 }, (_, i) => {
        const index = (i * 1_237) % 5_000 // any order
        return { file: 0, offset: 517 * index, length: 517, region, at: 2 * page * i }
      })
      await reader.submit(reads).done
      for (const { offset, length, at } of reads) {
        const landed = region.view(at + (offset % page), length)
        expect(Buffer.compare(landed, content.subarray(offset, offset + length))).toBe(0)
      }
    })
  })

  it('lands beyond byte 2^32 of a region', async () => {
    await withReader([file], options, async (reader) => {
      using region = allocRegion(2 ** 32 + 2 ** 20) // only the pages around the read are ever touched
      await reader.submit([{ file: 0, offset: 4000, length: 5000, region, at: 2 ** 32 - page }]).done
      const landed = region.view(2 ** 32 - page + 4000, 5000)
      expect(Buffer.compare(landed, content.subarray(4000, 9000))).toBe(0)
    })
  })

  it('counts an end of file at the first byte that is missing, however many blocks follow it', async () => {
    await withReader([file], options, (reader) => {
      using region = allocRegion(16 * 2 ** 20)
      const batch = reader.submit([{ file: 0, offset: 100, length: 15 * 2 ** 20, region, at: 0 }])
      const fault = { code: 'ERR_URING_EOF', haveBytes: content.length - 100 }
      expect(() => batch.wait(0)).toThrow(expect.objectContaining(fault))
    })
  })
})

it('a read of more than 2 GiB is counted whole', async () => {
  // by threads into memory nobody touches: a registered buffer would be made resident
  await withReader([file], { backend: 'pread' }, (reader) => {
    const length = 2 ** 31 + 100
    using region = allocRegion(paddedBytes(7, length))
    const batch = reader.submit([{ file: 0, offset: 7, length, region, at: 0 }])
    const fault = { code: 'ERR_URING_EOF', needBytes: length, haveBytes: content.length - 7 }
    expect(() => batch.wait(0)).toThrow(expect.objectContaining(fault))
  })
})

describe('a region larger than one registered buffer', () => {
  it('is read into across the borders of its 64 MiB chunks', async () => {
    using region = allocRegion(130 * 2 ** 20)
    await withReader([file], {}, async (reader) => {
      for (const border of [64 * 2 ** 20, 128 * 2 ** 20]) {
        const at = border - 3 * page
        await reader.submit([{ file: 0, offset: 77, length: 100_000, region, at }]).done
        expect(Buffer.compare(region.view(at + 77, 100_000), content.subarray(77, 100_077))).toBe(0)
      }
      const { backend, registrationRefusal, registeredBytes } = reader.info
      const pinned = backend === 'io_uring' && registrationRefusal === null ? 130 * 2 ** 20 : 0
      expect(registeredBytes).toBe(pinned)
    })
  })

  it('is read through plain memory when nothing is to be registered', async () => {
    using region = allocRegion(paddedBytes(77, 100_000))
    await withReader([file], { registers: false }, async (reader) => {
      await reader.submit([{ file: 0, offset: 77, length: 100_000, region, at: 0 }]).done
      expect(Buffer.compare(region.view(77, 100_000), content.subarray(77, 100_077))).toBe(0)
      expect(reader.info).toMatchObject({ registeredBytes: 0, registrationRefusal: null })
    })
  })

  it('is given back by close() although the reader had it registered', async () => {
    await withReader([file], {}, async (reader) => {
      const region = allocRegion(2 ** 20)
      const view = region.view(0, 4096)
      await reader.submit([{ file: 0, offset: 0, length: 4096, region, at: 0 }]).done
      const held = reader.info.registeredBytes
      region.close()
      expect(reader.info.registeredBytes).toBe(held) // the view still uses it
      expect(view).toEqual(content.subarray(0, 4096))
      const other = allocRegion(2 ** 20)
      await reader.submit([{ file: 0, offset: 0, length: 4096, region: other, at: 0 }]).done
      other.close()
      expect(reader.info.registeredBytes).toBe(held)
    })
  })
})

describe('a file in memory (tmpfs)', () => {
  const shared = '/dev/shm'
  it.skipIf(!existsSync(shared))(
    'is read with direct auto, by name with direct on (needs /dev/shm)',
    async () => {
      const { file: inMemory, content: want } = patternFile(scratchFolder(shared), 'file', 3_000_000)
      const check = (options: Parameters<typeof openReader>[1]) =>
        withReader([inMemory], options, async (reader) => {
          using region = allocRegion(paddedBytes(5, 2_999_995))
          await reader.submit([{ file: 0, offset: 5, length: 2_999_995, region, at: 0 }]).done
          expect(Buffer.compare(region.view(5, 2_999_995), want.subarray(5))).toBe(0)
        })
      await check({ direct: 'auto' })
      const { direct, directRefusal } = backendInfo([inMemory]).files[0]!
      if (direct) return check({ direct: 'on' }) // Linux 6.6 and later
      expect(directRefusal).toMatch(/O_DIRECT/)
      expect(() => openReader([inMemory], { direct: 'on' })).toThrow(
        expect.objectContaining({ code: 'ERR_URING_DIRECT' })
      )
    }
  )
})
