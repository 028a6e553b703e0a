import { describe, expect, it } from 'vitest'
import { allocRegion, openReader } from '../src/index.js'
import { modesFor, patternFile, scratchFolder, withReader } from './scratch.js'

const folder = scratchFolder()
const bytes = 24 * 2 ** 20 + 123
const { file, content } = patternFile(folder, 'first', bytes, 1)
const copy = patternFile(folder, 'copy', bytes, 1)
const other = patternFile(folder, 'other', 3 * 2 ** 20, 2)
const code = (text: string) => expect.objectContaining({ code: text })

describe.each(modesFor(file))('a reader with $backend, direct $direct', ({ backend, direct }) => {
  const whole = (region: ReturnType<typeof allocRegion>, at = 0) => ({
    file: 0,
    offset: 0,
    length: bytes,
    region,
    at
  })

  it('reads an urgent batch before what waits, and a hurried one before the rest', async () => {
    await withReader([file], { backend, direct, depth: 1 }, async (reader) => {
      using region = allocRegion(4 * 2 ** 25)
      const inTime = () => {
        const later = reader.submit([whole(region)], 2)
        const hurried = reader.submit([whole(region, 2 ** 25)], 2)
        const urgent = reader.submit([whole(region, 2 ** 26)])
        hurried.hurry()
        const wasInTime = !later.ended(0)
        for (const batch of [later, hurried, urgent]) batch.wait(0)
        if (!wasInTime) return false
        expect(urgent.endedAt(0)).toBeLessThan(later.endedAt(0))
        expect(hurried.endedAt(0)).toBeLessThan(later.endedAt(0))
        expect(Math.abs(later.endedAt(0) - performance.now())).toBeLessThan(60_000)
        return true
      }
      // this thread may have been kept from submitting until the first batch was over: that shows nothing
      let tries = 0
      while (!inTime() && tries < 50) tries++
      expect(tries).toBeLessThan(50)
      for (const at of [0, 2 ** 25, 2 ** 26]) expect(Buffer.compare(region.view(at, bytes), content)).toBe(0)
    })
  })

  it('does not read what is given up, and says so', async () => {
    await withReader([file], { backend, direct, depth: 1 }, async (reader) => {
      using region = allocRegion(2 ** 26)
      const inTime = () => {
        const first = reader.submit([whole(region)])
        const second = reader.submit([whole(region, 2 ** 25)], 1)
        second.giveUp()
        const wasInTime = !first.ended(0)
        if (wasInTime) {
          expect(() => second.wait(0)).toThrow(code('ERR_URING_GIVEN_UP'))
          expect(second.ended(0)).toBe(true)
        }
        first.wait(0)
        first.giveUp()
        first.wait(0)
        return wasInTime
      }
      // as above: a thread that was kept until the first batch was over gave nothing up
      let tries = 0
      while (!inTime() && tries < 50) tries++
      expect(tries).toBeLessThan(50)
      expect(Buffer.compare(region.view(0, bytes), content)).toBe(0)
    })
  })

  it('names the copy there is when a read of it is given up', async () => {
    await withReader([file, [null, other.file]], { backend, direct, depth: 1 }, async (reader) => {
      using region = allocRegion(2 ** 26)
      const read = { ...whole(region), file: 1, length: 3 * 2 ** 20 }
      const fault = () => {
        const first = reader.submit([read])
        const second = reader.submit([{ ...read, at: 2 ** 25 }], 2)
        second.giveUp()
        first.wait(0)
        try {
          second.wait(0)
        } catch (error) {
          return error
        }
        return undefined
      }
      // this thread may have been kept from giving up until everything was read: that shows nothing
      let found: unknown
      for (let tries = 0; found === undefined && tries < 50; tries++) found = fault()
      expect(found).toMatchObject({
        code: 'ERR_URING_GIVEN_UP',
        file: other.file,
        message: expect.stringContaining(other.file)
      })
    })
  })

  it('takes a file from all of its copies, and one without a copy from where it is', async () => {
    const files = [[file, copy.file], other.file, [null, other.file]]
    await withReader(files, { backend, direct, depth: 2 }, async (reader) => {
      using region = allocRegion(2 ** 26)
      const rest = [1, 2].map((index) => ({
        file: index,
        offset: 5,
        length: 1000,
        region,
        at: 2 ** 25 + index * 2 ** 20
      }))
      const batch = reader.submit([whole(region), ...rest])
      for (let i = 0; i < 3; i++) batch.wait(i)
      expect(Buffer.compare(region.view(0, bytes), content)).toBe(0)
      for (const { at } of rest)
        expect(Buffer.compare(region.view(at + 5, 1000), other.content.subarray(5, 1005))).toBe(0)
      const { drives, files: opened } = reader.info
      expect(opened.map(({ path }) => path)).toEqual([file, copy.file, other.file, other.file])
      expect(drives).toHaveLength(2)
      for (const { bytesRead, busySeconds } of drives) {
        expect(bytesRead).toBeGreaterThan(0)
        expect(busySeconds).toBeGreaterThan(0)
      }
    })
  })
})

it('a reader refuses a file without a copy, and an urgency that does not exist', async () => {
  expect(() => openReader([[null]])).toThrow(code('ERR_OUT_OF_RANGE'))
  expect(() => openReader([new Array(65).fill(file)])).toThrow(code('ERR_OUT_OF_RANGE'))
  await withReader([file], {}, (reader) => {
    using region = allocRegion(4096)
    const read = { file: 0, offset: 0, length: 1, region, at: 0 }
    for (const urgency of [-1, 3, 1.5, 2 ** 32, Number.NaN])
      expect(() => reader.submit([read], urgency as 0)).toThrow(code('ERR_OUT_OF_RANGE'))
  })
})
