import { cpSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { supportedIsas } from '@k3/vector-ops'
import { beforeAll, describe, expect, test } from 'vitest'
import { fixture, k3, scratchFolder } from './k3.js'

// from the experts of one token to all of the model's
const SLOTS = [4, 5, 50, 12 * 24]

describe('the logits of the tiny model', { timeout: 120_000 }, () => {
  const dir = scratchFolder()
  const model = path.join(dir, 'tiny')
  const { prompt } = JSON.parse(readFileSync(fixture('expected/tiny-seed5.json'), 'utf8')) as {
    prompt: number[]
  }
  let first: Buffer

  const logits = async (...flags: string[]): Promise<Buffer> => {
    const file = path.join(dir, 'logits.f32')
    const run = ['generate', '--model', model, '--ids', prompt.join(','), '--max-tokens', '1', '--quiet']
    const { code, stderr } = await k3([...run, '--dump-logits', file, ...flags])
    if (code !== 0) throw new Error(stderr)
    return readFileSync(file)
  }

  beforeAll(async () => {
    await k3(['synth', '--preset', 'tiny', '--seed', '5', '--out', model, '--quiet'])
    first = await logits('--threads', '1', '--isa', 'scalar')
  })

  // every instruction set with every number of threads and every chunk size, the cache sizes in turn
  const ways = supportedIsas()
    .flatMap((isa) =>
      [1, 2, 3, 4].flatMap((threads) => [1, 2, 7, 64].map((chunk) => ({ isa, threads, chunk })))
    )
    .map((way, i) => ({ ...way, slots: SLOTS[i % SLOTS.length]! }))
  test.each(ways)(
    'have the same bits with $isa, $threads threads, chunks of $chunk, $slots slots',
    async (way) => {
      const { isa, threads, chunk, slots } = way
      const flags = ['--isa', isa, '--threads', threads, '--chunk-tokens', chunk, '--cache-slots', slots]
      expect((await logits(...flags.map(String))).equals(first)).toBe(true)
    }
  )

  test.each(SLOTS)('have the same bits with %i slots', async (slots) => {
    expect((await logits('--threads', '1', '--cache-slots', String(slots))).equals(first)).toBe(true)
  })

  const places = ['resident', 'mmap', 'stream'].flatMap((trunk) =>
    ['io_uring', 'pread'].map((backend) => ({ trunk, backend }))
  )
  test.each(places)('have the same bits with the trunk $trunk, read with $backend', async (place) => {
    const flags = ['--trunk', place.trunk, '--backend', place.backend]
    for (const rest of [
      ['--direct', 'off', '--chunk-tokens', '1', '--cache-slots', '4'],
      ['--chunk-tokens', '3', '--cache-slots', '9']
    ])
      expect((await logits(...flags, ...rest)).equals(first)).toBe(true)
  })

  test.each([0, 3, 24])(
    'have the same bits with a lookahead of %i, fed token by token',
    async (lookahead) => {
      const flags = ['--lookahead', String(lookahead), '--trunk', 'stream', '--chunk-tokens', '1']
      expect((await logits(...flags, '--cache-slots', '30')).equals(first)).toBe(true)
    }
  )

  test('have the same bits read from two folders', async () => {
    const mirror = path.join(dir, 'mirror')
    cpSync(model, mirror, { recursive: true })
    const flags = ['--also', mirror, '--also', model, '--cache-slots', '5']
    for (const trunk of ['stream', 'mmap'])
      expect((await logits(...flags, '--trunk', trunk)).equals(first)).toBe(true)
  })

  test('have 512 finite numbers', () => {
    const numbers = new Float32Array(first.buffer.slice(first.byteOffset, first.byteOffset + first.length))
    expect([numbers.length, numbers.every(Number.isFinite)]).toEqual([512, true])
  })
})
