import { modelDir } from '@k3/demo-model'
import { describe, expect, it } from 'vitest'
import { openCheckpoint } from '../src/checkpoint/open-checkpoint.js'
import { openModel } from '../src/open-model.js'
import { HEAD } from '../src/trunk-segments.js'
import type { ReadSpan } from '../src/watch-reads.js'
import { demoCase } from './demo-cases.js'

const { prompt } = demoCase('raw-01')
const tokens = [...prompt, ...prompt.map((id) => id + 1), 7, 8, 9]

const key = ({ file, offset }: ReadSpan): string => `${file} ${offset}`

describe('a chunk of a streamed model', () => {
  it('reads each of its experts once, however few slots there are, and the trunk once', async () => {
    const checkpoint = await openCheckpoint(modelDir)
    const reads: ReadSpan[] = []
    const chosen = new Set<string>()
    await using model = await openModel(modelDir, {
      trunk: 'stream',
      cacheSlots: 5,
      chunkTokens: 64,
      onRead: (read) => reads.push(read)
    })
    await model.forward([1])
    const { bytesRead, trunkBytesRead } = model.traffic
    await model.forward(tokens, { observe: () => undefined })
    const traffic = model.traffic
    // more than the cache holds at once, so that they come in waves
    const { bytes } = checkpoint.experts(1)
    const perLayer = (traffic.bytesRead - bytesRead) / bytes / 12
    expect(perLayer).toBeGreaterThan(5)
    expect(perLayer).toBeLessThanOrEqual(16)
    await model[Symbol.asyncDispose]()
    const experts = reads.filter(({ kind, bytes: length }) => kind === 'wanted' && length === bytes)
    for (const read of experts.slice(-perLayer * 12)) {
      expect(chosen.has(key(read))).toBe(false)
      chosen.add(key(read))
    }
    // what the next pass begins with is read ahead as well
    const trunk = reads.filter(({ kind }) => kind === 'trunk')
    const once = [...new Map(trunk.map((read) => [key(read), read.bytes])).values()].reduce((a, b) => a + b)
    expect(traffic.trunkBytesRead - trunkBytesRead).toBeLessThan(1.4 * once)
  })

  it('reads the head for the last token of a prompt only', async () => {
    const checkpoint = await openCheckpoint(modelDir)
    const { file, offset, bytes } = checkpoint.extent(HEAD)
    const reads: ReadSpan[] = []
    const model = await openModel(modelDir, {
      trunk: 'stream',
      chunkTokens: 4,
      onRead: (read) => reads.push(read)
    })
    await model.createSession().append(tokens)
    await model[Symbol.asyncDispose]()
    const isHead = (read: ReadSpan) =>
      read.file === checkpoint.files[file] && read.offset >= offset && read.offset < offset + bytes
    const ofHead = reads.filter(isHead).reduce((sum, read) => sum + read.bytes, 0)
    expect(ofHead).toBe(bytes)
  })
})
