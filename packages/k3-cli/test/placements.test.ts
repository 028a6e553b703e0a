import { cpSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { beforeAll, describe, expect, test } from 'vitest'
import { k3, scratchFolder } from './k3.js'

const TRUNKS = ['resident', 'mmap', 'stream']
const BACKENDS = [
  ['io_uring', 'auto'],
  ['io_uring', 'off'],
  ['pread', 'auto'],
  ['pread', 'off']
] as const
// coprime lengths, so that every trunk meets every value of each
const LOOKAHEADS = ['0', '1', '4', '0', '8']
const CHUNKS = ['1', '3', '64', '1', '2', '7', '5']
const SLOTS = ['4', '6', '40', '192', '9', '17', '100', '5', '4', '64', '12']

describe.each([
  { name: 'tiny-93', ids: '1,200,3,77,500,6,90' },
  { name: 'the demo model', ids: '5,1024,77,300,9,9,12' }
])('the logits of $name', { timeout: 120_000 }, ({ name, ids }) => {
  const scratch = scratchFolder()
  const model = name === 'tiny-93' ? path.join(scratch, 'tiny-93') : modelDir
  const mirror = path.join(scratch, 'mirror')
  let first: Buffer

  const logits = async (flags: readonly string[]): Promise<Buffer> => {
    const file = path.join(scratch, 'logits.f32')
    const run = ['generate', '--model', model, '--ids', ids, '--max-tokens', '1', '--quiet']
    const { code, stderr } = await k3([...run, '--dump-logits', file, ...flags])
    if (code !== 0) throw new Error(stderr)
    return readFileSync(file)
  }

  beforeAll(async () => {
    if (name === 'tiny-93') await k3(['synth', '--preset', name, '--seed', '5', '--out', model, '--quiet'])
    cpSync(model, mirror, { recursive: true })
    first = await logits(['--trunk', 'mmap', '--threads', '1'])
  })

  const ways = TRUNKS.flatMap((trunk) => BACKENDS.map((backend) => ({ trunk, backend }))).flatMap((way) =>
    ['with a mirror', 'alone'].map((folders) => ({ ...way, folders }))
  )
  const settings = ways.map((way, i) => ({
    ...way,
    lookahead: LOOKAHEADS[i % LOOKAHEADS.length]!,
    chunk: CHUNKS[i % CHUNKS.length]!,
    slots: SLOTS[i % SLOTS.length]!
  }))
  test.each(settings)(
    'are the same, trunk $trunk, $backend, lookahead $lookahead, chunks of $chunk, $slots slots, $folders',
    async ({ trunk, backend: [backend, direct], lookahead, chunk, slots, folders }) => {
      const flags = ['--trunk', trunk, '--backend', backend, '--direct', direct, '--lookahead', lookahead]
      const sizes = ['--chunk-tokens', chunk, '--cache-slots', slots]
      const also = folders === 'alone' ? [] : ['--also', mirror]
      expect((await logits([...flags, ...sizes, ...also])).equals(first)).toBe(true)
    }
  )
})
