import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expectedFile, traceFile } from '@k3/demo-model'
import { policyNames } from '@k3/moe-cache'
import { RoutingTrace, readTrace, writeTrace } from '@k3/moe-cache/traces'
import { beforeAll, describe, expect, test } from 'vitest'
import { ticksUpTo } from '../src/trace/chart.js'
import { fixture, k3, k3Object, scratchFolder } from './k3.js'

interface Rate {
  readonly policy: string
  readonly slots: number
  readonly hits: number
  readonly misses: number
  readonly hit_rate: number
  readonly hit_rate_after: number
  readonly layers: { layer: number; hits: number; misses: number }[]
}

const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8')) as {
  cases: { name: string; text?: string }[]
}
const raw = cases.find(({ name }) => name === 'raw-01')!
const dir = scratchFolder()
const recorded = path.join(dir, 'once.k3trace')
const record = ['trace', 'record', '--threads', '1', raw.text!]
const CONFIG = path.join(fixture('..'), 'docs/spec/config.k3.json')
const docTables = readFileSync(path.join(fixture('..'), 'docs/EXPERT_CACHE.md'), 'utf8')
const KIMI = [fixture('traces/expert_trace.bin'), '--pairs', '16']

const rates = async (...args: string[]): Promise<Rate[]> =>
  (await k3Object(['trace', ...args, '--json'])).rates as Rate[]

describe('k3 trace record', () => {
  test.each([
    ['5', 'lru', '16'],
    ['40', 'next-use', '64'],
    ['96', 's3-fifo', '1']
  ])('writes what replays to the hits of the run, %s slots, %s', async (slots, policy, chunk) => {
    const flags = ['--cache-slots', slots, '--policy', policy, '--chunk-tokens', chunk]
    const run = await k3Object([...record, '--max-tokens', '24', '--out', recorded, ...flags, '--json'])
    expect(run).toMatchObject({ file: recorded, bytes: readFileSync(recorded).length, tokens: 24 })
    const [replayed] = await rates('replay', recorded, '--slots', slots, '--policy', policy)
    expect({ slots: replayed!.slots, hits: replayed!.hits, misses: replayed!.misses }).toEqual(run.cache)
  })

  test('keeps the tokens of the prompt together, and the size of an expert', async () => {
    await k3([...record, '--max-tokens', '3', '--out', recorded, '--quiet'])
    const { trace, expertCount, expertBytes } = readTrace(readFileSync(recorded))
    const passes = Array.from({ length: trace.length / 12 }, (_, i) => trace.tokensAt(12 * i))
    expect(passes).toEqual([expect.any(Number), 1, 1])
    expect(passes[0]).toBeGreaterThan(1)
    expect([trace.topK, expertCount, expertBytes % 4096]).toEqual([4, 16, 0])
  })

  test('leaves no half a file behind when it cannot write', async () => {
    const place = path.join(dir, 'none', 'x.k3trace')
    const { code, stderr } = await k3([...record, '--max-tokens', '1', '--out', place])
    expect([code, stderr.includes('[ERR_TRACE_WRITE]')]).toEqual([1, true])
    const folder = path.join(dir, 'folder')
    await k3([...record, '--max-tokens', '1', '--out', path.join(dir, 'folder')])
    const before = readdirSync(dir)
    expect(before.filter((name) => name.endsWith('.tmp'))).toEqual([])
    expect(existsSync(folder)).toBe(true)
  })

  test('wants one prompt and a file', async () => {
    for (const args of [
      record,
      ['trace', 'record', '--out', recorded],
      [...record, '--ids', '1', '--out', recorded]
    ])
      expect((await k3(args)).code).toBe(2)
  })
})

// a table replays 25,140 records 30 times
describe('k3 trace replay and compare', { timeout: 60_000 }, () => {
  beforeAll(async () => {
    await k3([...record, '--max-tokens', '24', '--out', recorded, '--quiet'])
  })

  test('give the table of docs/EXPERT_CACHE.md for the trace of Kimi-K3', async () => {
    const { code, stdout, stderr } = await k3([
      'trace',
      'compare',
      ...KIMI,
      '--ram',
      '9,18,26,36,52',
      '--config',
      CONFIG
    ])
    expect(code).toBe(0)
    expect(stderr).toContain('of its 6256 records the last sweep counts, 1104 records in decoding order')
    expect(stdout).toContain('In-sample')
    expect(docTables).toContain(stdout)
  })

  test('give the table of docs/EXPERT_CACHE.md for the demo trace', async () => {
    const { stdout } = await k3(['trace', 'compare', traceFile, '--slots', '24,48,72,96,144'])
    expect(docTables).toContain(stdout)
  })

  test('agree with each other, in rates and in layers', async () => {
    const all = await rates('compare', recorded, '--slots', '24,50')
    expect(all.map(({ policy }) => policy)).toEqual([...policyNames, 'belady', ...policyNames, 'belady'])
    for (const policy of policyNames) {
      const [one, best] = await rates('replay', recorded, '--slots', '50', '--policy', policy)
      expect(all).toContainEqual(one)
      expect(all).toContainEqual(best)
      expect(one!.hit_rate).toBeLessThanOrEqual(best!.hit_rate)
      expect(one!.layers.reduce((sum, { hits }) => sum + hits, 0)).toBe(one!.hits)
    }
  })

  test('count after the first part what --split says', async () => {
    const [whole] = await rates('replay', recorded, '--slots', '50', '--split', '0')
    const [part] = await rates('replay', recorded, '--slots', '50', '--split', '0.9')
    expect(whole!.hit_rate_after).toBe(whole!.hit_rate)
    expect(part!.hit_rate).toBe(whole!.hit_rate)
    expect(part!.hit_rate_after).not.toBe(whole!.hit_rate)
  })

  test('take memory for slots by the size the trace states', async () => {
    const { expertBytes } = readTrace(readFileSync(recorded))
    const gigabytes = String((50.5 * expertBytes) / 1e9)
    expect(await rates('replay', recorded, '--ram', gigabytes)).toMatchObject([{ slots: 50 }, { slots: 50 }])
  })

  test('print each layer with --per-layer', async () => {
    const { stdout } = await k3(['trace', 'replay', recorded, '--slots', '24', '--per-layer'])
    expect(stdout).toMatch(/^slots +GB +policy +hits +misses +hit % +after % +of best %\n/)
    expect(stdout.split('\n\n')[1]!.trimEnd().split('\n').length).toBe(13)
  })

  test('draw a line for each policy', async () => {
    const svg = path.join(dir, 'once.svg')
    await k3(['trace', 'compare', recorded, '--slots', '24,50', '--svg', svg])
    const text = readFileSync(svg, 'utf8')
    for (const name of [...policyNames, 'belady']) expect(text).toContain(`>${name}</text>`)
    expect(text.match(/<circle/g)!.length).toBe(12)
    expect(text).toContain('cache in experts')
    expect(text).not.toMatch(/NaN|undefined/)
    const nowhere = await k3([
      'trace',
      'compare',
      recorded,
      '--slots',
      '24',
      '--svg',
      path.join(dir, 'no', 'x.svg')
    ])
    expect([nowhere.code, nowhere.stderr.includes('[ERR_TRACE_WRITE]')]).toEqual([1, true])
  })

  test('read a trace from standard input', async () => {
    const { stdout } = await k3(['trace', 'replay', '-', '--slots', '24'], { stdin: readFileSync(recorded) })
    expect(stdout).toContain('next-use')
  })
})

describe('a trace is refused', () => {
  const refusal = async (bytes: Uint8Array, ...flags: string[]) => {
    const file = path.join(dir, 'bad.k3trace')
    writeFileSync(file, bytes)
    const { code, stdout, stderr } = await k3(['trace', 'compare', file, '--slots', '24', ...flags])
    return { code, stdout, stderr }
  }
  const good = (): Buffer => readFileSync(recorded)

  test.each([
    ['when it is cut short', () => good().subarray(0, -1), /bytes, the file has \d+ \[ERR_TRACE_FILE\]/],
    [
      'when a bit is wrong',
      () => Buffer.concat([good().subarray(0, 99), Buffer.of(77), good().subarray(100)]),
      /byte/
    ],
    ['when it is another file', () => readFileSync(CONFIG).subarray(1), /does not begin with K3TRACE/],
    ['when it is empty', () => Buffer.alloc(0), /at least/],
    ['when its lines are something else', () => readFileSync(CONFIG), /line 1/]
  ])('%s', async (_name, bytes, message) => {
    const { code, stdout, stderr } = await refusal(bytes())
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(message)
    expect(stderr).toContain('[ERR_TRACE_FILE]')
  })

  test('when pairs are no whole records', async () => {
    const { code, stderr } = await refusal(Buffer.alloc(20), '--pairs', '2')
    expect([code, stderr.includes('[ERR_TRACE_FILE]')]).toEqual([2, true])
  })

  test('when its size cannot be told or chosen', async () => {
    expect((await k3(['trace', 'compare', traceFile, '--ram', '9'])).stderr).toContain('--config')
    for (const flags of [
      [],
      ['--slots', '24', '--ram', '1'],
      ['--slots', ''],
      ['--slots', '3'],
      ['--split', '1']
    ])
      expect((await k3(['trace', 'compare', recorded, ...flags])).code).toBe(2)
  })

  test('never for its length alone: an empty one has no hits', async () => {
    const { code, stdout } = await refusal(
      writeTrace({ trace: new RoutingTrace(4), expertCount: 16, expertBytes: 0 })
    )
    expect([code, stdout.includes('0.0')]).toEqual([0, true])
  })
})

describe('--policy', () => {
  const run = [
    'generate',
    '--threads',
    '1',
    '--ids',
    '5,6,7,8',
    '--max-tokens',
    '30',
    '--cache-slots',
    '30',
    '--json'
  ]

  test('changes what is hit, and no bit', async () => {
    const seen = new Map<string, unknown>()
    const logits = new Set<string>()
    for (const policy of policyNames) {
      const file = path.join(dir, 'logits.f32')
      const { cache, ids } = await k3Object([...run, '--policy', policy, '--dump-logits', file])
      seen.set(policy, (cache as { hits: number }).hits)
      logits.add(`${readFileSync(file).toString('base64')} ${String(ids)}`)
    }
    expect(logits.size).toBe(1)
    expect(new Set(seen.values()).size).toBeGreaterThan(2)
    const { cache } = await k3Object(run)
    expect((cache as { hits: number }).hits).toBe(seen.get('next-use'))
  })

  test('is refused when there is no such policy', async () => {
    expect((await k3([...run, '--policy', 'fifo'])).code).toBe(2)
  })
})

describe('ticks', () => {
  test.each([
    [43.3, [0, 10, 20, 30, 40, 50]],
    [52, [0, 10, 20, 30, 40, 50, 60]],
    [1, [0, 0.2, 0.4, 0.6, 0.8, 1]],
    [144, [0, 50, 100, 150]]
  ])('up to %d are round', (most, ticks) => {
    expect(ticksUpTo(most)).toEqual(ticks)
  })
})
