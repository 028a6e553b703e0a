import { constants } from 'node:buffer'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync
} from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { allocRegion, mapReadOnly, openReader, UringError } from '../src/index.js'
import { patternFile, scratchFolder } from './scratch.js'

const folder = scratchFolder()
const { file, content } = patternFile(folder, 'mapped', 100_003)
const withCode = (code: string) => expect.objectContaining({ code })

describe('allocRegion', () => {
  it.each([1, 4095, 4096, 2 ** 21 - 1, 2 ** 21, 2 ** 21 + 1, 5 * 2 ** 20 + 7])(
    'gives %i zero bytes, the last one writable',
    (bytes) => {
      using region = allocRegion(bytes)
      expect(region.bytes).toBe(bytes)
      const view = region.view(0, bytes)
      expect(view.every((byte) => byte === 0)).toBe(true)
      view[bytes - 1] = 9
      expect(region.view(bytes - 1, 1)).toEqual(Uint8Array.of(9))
    }
  )

  it.each([0, -1, 1.5, Number.NaN, 2 ** 53, '4096'])('refuses %s bytes', (bytes) => {
    expect(() => allocRegion(bytes as number)).toThrow(RangeError)
    expect(() => allocRegion(bytes as number)).toThrow(withCode('ERR_OUT_OF_RANGE'))
  })

  it('throws by name when the system has no such memory', () => {
    const allocate = () => allocRegion(2 ** 50)
    expect(allocate).toThrow(UringError)
    expect(allocate).toThrow(expect.objectContaining({ code: 'ERR_URING_MEMORY', needBytes: 2 ** 50 }))
  })

  it('does not claim memory before it is touched', () => {
    const before = process.memoryUsage.rss()
    using region = allocRegion(2 ** 32 + 4096)
    region.view(2 ** 32, 1)[0] = 1
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 2 ** 20)
  })
})

describe('mapReadOnly', () => {
  it('maps every byte of a file', () => {
    using region = mapReadOnly(file)
    expect(region.bytes).toBe(content.length)
    expect(Buffer.compare(region.view(0, content.length), content)).toBe(0)
    expect(region.view(99_999, 4)).toEqual(content.subarray(99_999, 100_003))
  })

  it('keeps a write through a view away from the file', () => {
    using region = mapReadOnly(file)
    const view = region.view(0, 16)
    view[3] = content[3]! ^ 0xff
    expect(region.view(0, 4)[3]).toBe(content[3]! ^ 0xff)
    expect(Buffer.compare(readFileSync(file), content)).toBe(0)
  })

  it('is refused as a target of reads', async () => {
    using region = mapReadOnly(file)
    await using reader = openReader([file])
    const submit = () => reader.submit([{ file: 0, offset: 0, length: 4096, region, at: 0 }])
    expect(submit).toThrow(withCode('ERR_OUT_OF_RANGE'))
  })

  it('names a missing file', () => {
    const missing = path.join(folder, 'missing')
    expect(() => mapReadOnly(missing)).toThrow(
      expect.objectContaining({
        code: 'ERR_URING_OPEN',
        file: missing,
        message: expect.stringContaining('ENOENT')
      })
    )
  })

  it('refuses a directory and an empty file', () => {
    const directory = path.join(folder, 'directory')
    const empty = path.join(folder, 'empty')
    mkdirSync(directory)
    writeFileSync(empty, '')
    expect(() => mapReadOnly(directory)).toThrow(withCode('ERR_URING_NOT_A_FILE'))
    expect(() => mapReadOnly(empty)).toThrow(/empty/)
    expect(() => mapReadOnly(empty)).toThrow(withCode('ERR_URING_NOT_A_FILE'))
  })

  it('maps beyond 4 GiB', () => {
    const sparse = path.join(folder, 'sparse')
    writeFileSync(sparse, '')
    truncateSync(sparse, 2 ** 32 + 10)
    appendFileSync(sparse, 'end')
    using region = mapReadOnly(sparse)
    expect(region.bytes).toBe(2 ** 32 + 13)
    expect(Buffer.from(region.view(2 ** 32 + 10, 3)).toString()).toBe('end')
  })
})

describe('Region.view', () => {
  it('refuses bytes outside the region', () => {
    using region = allocRegion(100)
    expect(region.view(100, 0).length).toBe(0)
    for (const [offset, length] of [
      [0, 101],
      [100, 1],
      [-1, 1],
      [0.5, 1],
      [0, Number.NaN]
    ] as const)
      expect(() => region.view(offset, length)).toThrow(withCode('ERR_OUT_OF_RANGE'))
  })

  it('refuses what no typed array can hold', ({ skip }) => {
    if (constants.MAX_LENGTH > 2 ** 33) skip(`a typed array here may have ${constants.MAX_LENGTH} bytes`)
    using region = allocRegion(constants.MAX_LENGTH + 1)
    expect(() => region.view(0, constants.MAX_LENGTH + 1)).toThrow(withCode('ERR_URING_VIEW'))
    expect(region.view(1, constants.MAX_LENGTH).length).toBe(constants.MAX_LENGTH)
  })

  it('stays readable after the region is closed', () => {
    const region = mapReadOnly(file)
    const view = region.view(0, content.length)
    region.close()
    expect(Buffer.compare(view, content)).toBe(0)
  })

  it.skipIf(!existsSync('/proc/self/fd'))(
    'lets go of its descriptor when it is closed, not when its views are (needs /proc)',
    () => {
      const descriptors = () => readdirSync('/proc/self/fd').length
      const before = descriptors()
      const region = mapReadOnly(file)
      const view = region.view(0, content.length)
      expect(descriptors()).toBe(before + 1)
      region.close()
      expect(descriptors()).toBe(before)
      expect(view[0]).toBe(content[0])
    }
  )
})

describe('Region.close', () => {
  it('does nothing the second time and refuses later use by name', () => {
    const region = allocRegion(4096)
    region.close()
    region.close()
    region[Symbol.dispose]()
    expect(() => region.handle).toThrow(withCode('ERR_URING_REGION_CLOSED'))
    expect(() => region.view(0, 1)).toThrow(withCode('ERR_URING_REGION_CLOSED'))
    expect(() => region.verify()).toThrow(withCode('ERR_URING_REGION_CLOSED'))
  })

  it('gives the memory back at once, without waiting for the garbage collector', async () => {
    await using reader = openReader([file])
    const before = process.memoryUsage.rss()
    for (let i = 0; i < 40; i++) {
      const region = allocRegion(8 * 2 ** 20)
      for (let at = 0; at < region.bytes; at += 2 ** 18)
        reader.submit([{ file: 0, offset: 0, length: 100_003, region, at }]).wait(0)
      region.close()
    }
    expect(process.memoryUsage.rss() - before).toBeLessThan(160 * 2 ** 20)
  })
})

describe('allocRegion over NUMA nodes', () => {
  it('takes pages from the nodes in turn', ({ skip }) => {
    if (!existsSync('/proc/self/numa_maps')) skip('this kernel has no NUMA policies')
    const policies = () => readFileSync('/proc/self/numa_maps', 'utf8').match(/ interleave:0/g)?.length ?? 0
    const before = policies()
    using region = allocRegion(2 ** 22, { interleave: [0] })
    expect(policies()).toBe(before + 1)
    region.view(0, 4096)[0] = 1
    using local = allocRegion(2 ** 22)
    expect([policies(), local.bytes]).toEqual([before + 1, 2 ** 22])
  })

  it('refuses nodes that are not there, and no nodes at all', ({ skip }) => {
    expect(() => allocRegion(4096, { interleave: [52] })).toThrow(withCode('ERR_OUT_OF_RANGE'))
    expect(() => allocRegion(4096, { interleave: [-1] })).toThrow(withCode('ERR_OUT_OF_RANGE'))
    if (!existsSync('/proc/self/numa_maps')) skip('this kernel has no NUMA policies')
    expect(() => allocRegion(4096, { interleave: [51] })).toThrow(withCode('ERR_URING_MEMORY'))
  })
})

describe('Region.discard', () => {
  it.each(['io_uring', 'pread'] as const)(
    'gives pages back, and takes reads again, with %s',
    async (backend) => {
      const { file: large, content: bytes } = patternFile(folder, `discard-${backend}`, 3 * 2 ** 20)
      await using reader = openReader([large], { backend })
      using region = allocRegion(160 * 2 ** 20)
      const read = (at: number) => {
        reader.submit([{ file: 0, offset: 0, length: bytes.length, region, at }]).wait(0)
        return Buffer.compare(region.view(at, bytes.length), bytes)
      }
      const places = [0, 60 * 2 ** 20, 70 * 2 ** 20, 140 * 2 ** 20]
      for (const at of places) expect(read(at)).toBe(0)
      region.view(0, region.bytes).fill(7, 8 * 2 ** 20, 56 * 2 ** 20)
      const before = process.memoryUsage.rss()
      region.discard(4 * 2 ** 20, 62 * 2 ** 20)
      expect(before - process.memoryUsage.rss()).toBeGreaterThan(40 * 2 ** 20)
      expect(region.view(60 * 2 ** 20, 4096).every((byte) => byte === 0)).toBe(true)
      // what lies beside the pages is as it was
      for (const at of [0, 70 * 2 ** 20, 140 * 2 ** 20])
        expect(Buffer.compare(region.view(at, bytes.length), bytes)).toBe(0)
      for (const at of places) expect(read(at)).toBe(0)
    }
  )

  it.each(['io_uring', 'pread'] as const)(
    'refuses pages near a read on its way, and takes them when it is over, with %s',
    async (backend) => {
      const { file: large, content: bytes } = patternFile(folder, `busy-${backend}`, 24 * 2 ** 20)
      await using reader = openReader([large], { backend, depth: 1 })
      using region = allocRegion(160 * 2 ** 20)
      const whole = { file: 0, offset: 0, length: bytes.length, region, at: 2 ** 26 }
      const refusal = () => {
        const batch = reader.submit([whole])
        const attempt = () => region.discard(120 * 2 ** 20, 4096)
        try {
          attempt()
        } catch (error) {
          return error
        } finally {
          batch.wait(0)
          attempt()
        }
        return undefined
      }
      // this thread may have been kept from asking until the read was over: that shows nothing
      let found: unknown
      for (let tries = 0; found === undefined && tries < 50; tries++) found = refusal()
      expect(found).toMatchObject({ code: 'ERR_URING_REGION_BUSY', offset: 120 * 2 ** 20, needBytes: 4096 })
      expect(Buffer.compare(region.view(2 ** 26, bytes.length), bytes)).toBe(0)
      const batch = reader.submit([{ ...whole, at: 0 }])
      region.discard(2 ** 26, 2 ** 26) // chunks of their own
      batch.wait(0)
      expect(Buffer.compare(region.view(0, bytes.length), bytes)).toBe(0)
    }
  )

  it('brings back the bytes of a mapped file', () => {
    using region = mapReadOnly(file)
    const view = region.view(0, 4096)
    const before = view.slice()
    view.fill(7)
    region.discard(0, 4096)
    expect(view).toEqual(before)
  })

  it('refuses what is no whole page of the region', () => {
    using region = allocRegion(8192)
    for (const [offset, length] of [
      [1, 4096],
      [0, 4095],
      [0, 0],
      [4096, 8192],
      [-4096, 4096]
    ] as const)
      expect(() => region.discard(offset, length)).toThrow(withCode('ERR_OUT_OF_RANGE'))
  })
})

describe('Region.verify', () => {
  it('passes while the file is as it was, and for memory', () => {
    using region = mapReadOnly(file)
    using memory = allocRegion(1)
    region.verify()
    memory.verify()
  })

  it('throws once the file was truncated or written', () => {
    const { file: changing } = patternFile(folder, 'changing', 10_000)
    using region = mapReadOnly(changing)
    truncateSync(changing, 9_999)
    expect(() => region.verify()).toThrow(
      expect.objectContaining({ code: 'ERR_URING_CHANGED', file: changing })
    )
  })
})
