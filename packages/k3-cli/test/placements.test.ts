import { cpSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { policyNames } from '@k3/moe-cache'
import { beforeAll, describe, expect, test } from 'vitest'
import { k3, k3Object, scratchFolder } from './k3.js'

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
// shares of the weights that the smallest budget leaves on the disk
const BUDGETS = [0, 0.25, 0.5, 1]
// whole chunks of 7, in the demo model of 64 as well, and a ragged one
const prompt = (tokens: number): string => Array.from({ length: tokens }, (_, i) => (37 * i) % 500).join(',')

interface Plan {
  readonly smallest_bytes: number
  readonly cache_slots: number
  readonly terms: readonly { readonly component: string; readonly bytes: number }[]
}

const weightBytes = ({ terms }: Plan): number =>
  terms
    .filter(({ component }) =>
      ['trunk', 'trunk ring', 'head and embedding', 'expert cache'].includes(component)
    )
    .reduce((sum, { bytes }) => sum + bytes, 0)

describe.each([
  { name: 'tiny-93', ids: '1,200,3,77,500,6,90', longer: prompt(16) },
  { name: 'the demo model', ids: '5,1024,77,300,9,9,12', longer: prompt(66) }
])('the logits of $name', { timeout: 120_000 }, ({ name, ids, longer }) => {
  const scratch = scratchFolder()
  const model = name === 'tiny-93' ? path.join(scratch, 'tiny-93') : modelDir
  const mirror = path.join(scratch, 'mirror')
  let first: Buffer
  let long: Buffer | undefined

  const logits = async (flags: readonly string[], of = ids): Promise<Buffer> => {
    const file = path.join(scratch, 'logits.f32')
    const run = ['generate', '--model', model, '--ids', of, '--max-tokens', '1', '--quiet']
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
    slots: SLOTS[i % SLOTS.length]!,
    policy: policyNames[(i + Math.floor(i / 5)) % policyNames.length]!
  }))
  test.each(settings)(
    'are the same, trunk $trunk, $backend, lookahead $lookahead, chunks of $chunk, $slots slots, $policy, $folders',
    async ({ trunk, backend: [backend, direct], lookahead, chunk, slots, policy, folders }) => {
      const flags = ['--trunk', trunk, '--backend', backend, '--direct', direct, '--lookahead', lookahead]
      const sizes = ['--chunk-tokens', chunk, '--cache-slots', slots, '--policy', policy]
      const also = folders === 'alone' ? [] : ['--also', mirror]
      expect((await logits([...flags, ...sizes, ...also])).equals(first)).toBe(true)
    }
  )

  const budgets = TRUNKS.flatMap((trunk) => BUDGETS.map((share) => ({ trunk, share }))).map((way, i) => ({
    ...way,
    policy: policyNames[i % policyNames.length]!,
    lookahead: ['0', '3', '16'][(i + Math.floor(i / 3)) % 3]!,
    chunk: ['64', '7', '1'][(i + Math.floor(i / 4)) % 3]!,
    backend: ['io_uring', 'pread'][i % 2]!
  }))
  test.each(budgets)(
    'are the same, $share of the weights beyond the smallest budget, trunk $trunk, $policy, chunks of $chunk',
    async ({ share, trunk, policy, lookahead, chunk, backend }) => {
      const held = ['--trunk', trunk, '--chunk-tokens', chunk, '--context', '67', '--threads', '2']
      const planAt = async (ram: string) =>
        (await k3Object(['plan', '--model', model, ...held, '--ram', ram, '--json'])) as unknown as Plan
      const whole = await planAt('9000GB')
      const least = await planAt(`${whole.smallest_bytes / 1e6}MB`)
      const more = share * (weightBytes(whole) - weightBytes(least)) + (share === 1 ? 60e6 : 0)
      const ram = `${Math.ceil(whole.smallest_bytes + more) / 1e6}MB`
      const { cache_slots: slots } = await planAt(ram)
      if (share === 0) expect(slots).toBe(4)
      if (share === 1) expect(slots).toBe(whole.cache_slots)
      const flags = [
        ...held,
        '--ram',
        ram,
        '--policy',
        policy,
        '--lookahead',
        lookahead,
        '--backend',
        backend
      ]
      long ??= await logits(['--trunk', 'mmap', '--threads', '1'], longer)
      expect((await logits(flags, longer)).equals(long)).toBe(true)
    }
  )
})
