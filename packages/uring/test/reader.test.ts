import { mkdirSync, truncateSync } from 'node:fs'
import path from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { allocRegion, backendInfo, openReader, paddedBytes, UringError } from '../src/index.js'
import { modesFor, patternFile, scratchFolder, withReader } from './scratch.js'

const folder = scratchFolder()
const first = patternFile(folder, 'first', 3 * 2 ** 20 + 1234, 1)
const second = patternFile(folder, 'second', 40_000, 2)
const paths = [first.file, second.file]
const contents = [first.content, second.content]
const poison = 0xa5
const page = 4096

const withCode = (code: string) => expect.objectContaining({ code })
const modes = modesFor(first.file)

/** Lays reads out one after the other with a poisoned page between them. */
const layOut = (ranges: readonly { file: number; offset: number; length: number }[]) => {
  let at = page
  const spans = ranges.map((range) => {
    const span = { ...range, at }
    at += paddedBytes(range.offset, range.length) + page
    return span
  })
  return { spans, bytes: at }
}

describe('paddedBytes', () => {
  it.each([
    [0, 0, 0],
    [0, 1, 4096],
    [0, 4096, 4096],
    [1, 4096, 8192],
    [4095, 1, 4096],
    [4095, 2, 8192],
    [2 ** 40 + 40, 17_547_264, 17_547_264 + 4096]
  ])('of %i, %i is %i', (offset, length, want) => expect(paddedBytes(offset, length)).toBe(want))

  it('refuses what is no byte count', () => {
    expect(() => paddedBytes(-1, 1)).toThrow(withCode('ERR_OUT_OF_RANGE'))
    expect(() => paddedBytes(0, 0.5)).toThrow(withCode('ERR_OUT_OF_RANGE'))
  })
})

it('every mode is to be had on this machine', ({ skip }) => {
  if (modes.length < 4) skip(`only these modes are to be had, and tested, here: ${JSON.stringify(modes)}`)
})

describe.each(modes)('a reader with $backend, direct $direct', ({ backend, direct }) => {
  const options = { backend, direct }

  it('puts any range of any file where the placement rule says, and touches nothing else', async () => {
    const range = fc.nat(1).chain((file) => {
      const size = contents[file]!.length
      const edge = fc.constantFrom(
        0,
        1,
        16,
        40,
        48,
        4095,
        4096,
        4097,
        2 ** 20 - 1,
        2 ** 20,
        size - 1,
        size - page
      )
      const offset = fc.oneof(fc.nat(size - 1), edge).map((o) => Math.min(o, size - 1))
      return offset.chain((o) =>
        fc
          .oneof(fc.integer({ min: 1, max: size - o }), fc.constantFrom(1, 7, 63, 64, 65, page, size - o))
          .map((length) => ({ file, offset: o, length: Math.min(length, size - o) }))
      )
    })
    await withReader(paths, { ...options, depth: 3 }, async (reader) => {
      const property = fc.asyncProperty(fc.array(range, { minLength: 1, maxLength: 5 }), async (ranges) => {
        const { spans, bytes } = layOut(ranges)
        using region = allocRegion(bytes)
        region.view(0, bytes).fill(poison)
        const batch = reader.submit(spans.map((span) => ({ ...span, region })))
        if (ranges.length % 2) for (let i = spans.length - 1; i >= 0; i--) batch.wait(i)
        else await batch.done
        let clean = 0
        for (const { file, offset, length, at } of spans) {
          const landed = region.view(at + (offset % page), length)
          const wanted = contents[file]!.subarray(offset, offset + length)
          expect(Buffer.compare(landed, wanted)).toBe(0)
          expect(region.view(clean, at - clean).every((byte) => byte === poison)).toBe(true)
          clean = at + paddedBytes(offset, length)
        }
        expect(region.view(clean, bytes - clean).every((byte) => byte === poison)).toBe(true)
      })
      await fc.assert(property, { numRuns: 60, seed: 7 })
    })
  })

  it('says what is active', async () => {
    await withReader(paths, options, (reader) => {
      expect(reader.backend).toBe(backend)
      expect(reader.info).toMatchObject({ backend, ioUringRefusal: null })
      expect(reader.info.files.map((file) => file.direct)).toEqual([direct === 'on', direct === 'on'])
      expect(reader.info.files.map((file) => file.path)).toEqual(paths)
    })
  })

  it.each([
    ['the last byte is one too many', -10, 11, 10],
    ['the read begins at the end', 0, 1, 0],
    ['the read begins far behind the end', 10 * 2 ** 20, 5000, 0],
    ['the read begins on the last page', -1000, 2 * 2 ** 20, 1000]
  ])('names the file and what it has when %s', async (_, from, length, have) => {
    await withReader(paths, options, async (reader) => {
      using region = allocRegion(4 * 2 ** 20)
      const offset = first.content.length + from
      const batch = reader.submit([
        { file: 1, offset: 0, length: 100, region, at: 3 * 2 ** 20 },
        { file: 0, offset, length, region, at: 0 }
      ])
      batch.wait(0)
      const fault = { file: first.file, offset, needBytes: length, haveBytes: have, code: 'ERR_URING_EOF' }
      expect(() => batch.wait(1)).toThrow(expect.objectContaining(fault))
      await expect(batch.done).rejects.toThrow(UringError)
      await expect(batch.done).rejects.toMatchObject(fault)
    })
  })

  it('reports the end of a file that was truncated while open, and reads the rest', async () => {
    const { file, content } = patternFile(folder, `shrinking-${backend}-${direct}`, 2 * 2 ** 20 + 77)
    await withReader([file], options, async (reader) => {
      using region = allocRegion(4 * 2 ** 20)
      truncateSync(file, 2 ** 20 + 5)
      const batch = reader.submit([
        { file: 0, offset: 3, length: 2 ** 20, region, at: 0 },
        { file: 0, offset: 2 ** 20, length: 77, region, at: 2 * 2 ** 20 }
      ])
      batch.wait(0)
      expect(Buffer.compare(region.view(3, 2 ** 20), content.subarray(3, 2 ** 20 + 3))).toBe(0)
      expect(() => batch.wait(1)).toThrow(expect.objectContaining({ code: 'ERR_URING_EOF', haveBytes: 5 }))
    })
  })

  it('reads batches of several submits and waits for them in any order', async () => {
    await withReader(paths, { ...options, depth: 2 }, async (reader) => {
      using region = allocRegion(2 ** 20)
      const batches = Array.from({ length: 32 }, (_, i) =>
        reader.submit([{ file: 1, offset: 100 * i, length: 1000, region, at: 8192 * i }])
      )
      for (const i of [31, 0, 16, 3]) {
        batches[i]!.wait(0)
        const want = second.content.subarray(100 * i, 100 * i + 1000)
        expect(region.view(8192 * i + ((100 * i) % page), 1000)).toEqual(want)
      }
      await Promise.all(batches.map((batch) => batch.done))
    })
  })
})

describe('openReader', () => {
  it('names a missing file among others', () => {
    const missing = path.join(folder, 'missing')
    const open = () => openReader([first.file, missing])
    expect(open).toThrow(expect.objectContaining({ code: 'ERR_URING_OPEN', file: missing }))
    expect(open).toThrow(/ENOENT/)
  })

  it('refuses a directory and a device', () => {
    const directory = path.join(folder, 'directory')
    mkdirSync(directory)
    for (const file of [directory, '/dev/null'])
      expect(() => openReader([file])).toThrow(
        expect.objectContaining({ code: 'ERR_URING_NOT_A_FILE', file })
      )
  })

  it.each([
    [[], {}],
    [[first.file], { depth: 0 }],
    [[first.file], { depth: 257 }],
    [[first.file], { depth: 1.5 }],
    [[first.file], { registers: 1 as unknown as boolean }],
    [[first.file], { direct: 'yes' as 'on' }],
    [[first.file], { backend: 'toString' as 'auto' }]
  ])('refuses %j with %j', (files, options) => {
    expect(() => openReader(files, options)).toThrow(withCode('ERR_OUT_OF_RANGE'))
  })

  it('refuses direct reads asked for by name where there are none, and reports it otherwise', async () => {
    const file = '/proc/version' // a file system that never has O_DIRECT
    expect(() => openReader([file], { direct: 'on' })).toThrow(
      expect.objectContaining({ code: 'ERR_URING_DIRECT', file, message: expect.stringContaining('EINVAL') })
    )
    await withReader([file, first.file], { direct: 'auto' }, (reader) => {
      expect(reader.info.files[0]).toMatchObject({
        direct: false,
        directRefusal: expect.stringMatching(/EINVAL/)
      })
      using region = allocRegion(page)
      reader.submit([{ file: 0, offset: 0, length: 5, region, at: 0 }]).wait(0)
      expect(Buffer.from(region.view(0, 5)).toString()).toBe('Linux')
    })
  })
})

describe('Reader.submit', () => {
  const region = allocRegion(8 * page)
  const good = { file: 0, offset: 0, length: 100, region, at: 0 }

  it.each([
    ['no reads', []],
    ['an unknown file', [{ ...good, file: 2 }]],
    ['a fractional offset', [{ ...good, offset: 0.5 }]],
    ['an offset beyond 2^53', [{ ...good, offset: 2 ** 53 }]],
    ['an end beyond 2^53', [{ ...good, offset: 2 ** 53 - 1 }]],
    ['an empty read', [{ ...good, length: 0 }]],
    ['a target off the page', [{ ...good, at: 512 }]],
    ['a target beyond the region', [{ ...good, at: 8 * page }]],
    ['a span that the offset pushes over the end', [{ ...good, offset: 1, length: 8 * page }]],
    ['two reads on one page', [good, { ...good, offset: 4000, length: 200 }]]
  ])('refuses %s', async (_, reads) => {
    await withReader(paths, {}, (reader) => {
      expect(() => reader.submit(reads)).toThrow(RangeError)
      expect(() => reader.submit(reads)).toThrow(withCode('ERR_OUT_OF_RANGE'))
    })
  })

  it('refuses a handle that is no region, and one whose size is a lie', async () => {
    await withReader(paths, {}, (reader) => {
      const forged = { handle: {}, bytes: 8 * page }
      expect(() => reader.submit([{ ...good, region: forged }])).toThrow(TypeError)
      const lying = { handle: region.handle, bytes: 2 ** 40 }
      expect(() => reader.submit([{ ...good, at: 2 ** 30, region: lying }])).toThrow(RangeError)
    })
  })

  it('refuses a closed region by name', async () => {
    const closed = allocRegion(page)
    closed.close()
    await withReader(paths, {}, (reader) => {
      expect(() => reader.submit([{ ...good, region: closed }])).toThrow(withCode('ERR_URING_REGION_CLOSED'))
    })
  })

  it('takes a batch whose Read object is used again at once', async () => {
    await withReader(paths, {}, (reader) => {
      const read = { ...good, offset: first.content.length, length: 1 }
      const batch = reader.submit([read])
      read.offset = 0
      expect(() => batch.wait(0)).toThrow(expect.objectContaining({ offset: first.content.length }))
    })
  })
})

describe('Batch.wait', () => {
  it.each([-1, 1, 0.5, Number.NaN])('refuses index %s of a batch of one', async (index) => {
    using region = allocRegion(page)
    await withReader(paths, {}, (reader) => {
      const batch = reader.submit([{ file: 0, offset: 0, length: 1, region, at: 0 }])
      expect(() => batch.wait(index)).toThrow(withCode('ERR_OUT_OF_RANGE'))
    })
  })
})

describe('backendInfo', () => {
  it('answers without files and for files', () => {
    expect(backendInfo()).toMatchObject({ backend: modes[0]!.backend, files: [], registeredBytes: 0 })
    expect(backendInfo([second.file]).files).toHaveLength(1)
  })

  it('throws for a file that cannot be opened', () => {
    expect(() => backendInfo([path.join(folder, 'missing')])).toThrow(withCode('ERR_URING_OPEN'))
  })
})
