import { describe, expect, it } from 'vitest'
import { readAt } from '../src/read-at.js'

const content = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251))

/** A file whose reads bring at most `most` bytes at a time. */
const shortOf = (most: number) => ({
  read: (buffer: Buffer, at: number, bytes: number, offset: number) => {
    const part = content.subarray(offset, offset + Math.min(bytes, most))
    buffer.set(part, at)
    return Promise.resolve({ bytesRead: part.length, buffer })
  }
})

describe('readAt', () => {
  it.each([1, 7, 63, 999, 1000])('continues reads of %i bytes at most', async (most) => {
    const file = shortOf(most) as unknown as Parameters<typeof readAt>[0]
    expect(await readAt(file, 3, 500)).toEqual(content.subarray(3, 503))
    expect(await readAt(file, 900, 500)).toEqual(content.subarray(900))
    expect(await readAt(file, 1000, 5)).toEqual(Buffer.alloc(0))
  })
})
