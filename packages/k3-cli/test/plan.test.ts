import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { readNumaNodes } from '@k3/engine/memory'
import { describe, expect, test } from 'vitest'
import { inspectNuma } from '../src/inspect/numa.js'
import { fixture, k3, k3Object, scratchFolder } from './k3.js'

interface Plan {
  readonly ok: boolean
  readonly budget_bytes: number
  readonly planned_bytes: number
  readonly smallest_bytes: number
  readonly terms: readonly { component: string; bytes: number; reason: string }[]
  readonly trunk: { mode: string; pinned_layers: number[] }
  readonly cache_slots: number
  readonly context_tokens: number
  readonly chunk_tokens: number
  readonly prefix_cache_bytes: number
  readonly forecast: Record<string, number | string>
}
const planOf = async (...args: string[]) => (await k3Object(['plan', '--json', ...args])) as unknown as Plan
const SMALL = ['--ram', '16GB', '--threads', '2']

describe('k3 plan', () => {
  test('shows every component, its reason, and what binds', async () => {
    const { code, stdout, stderr } = await k3(['plan', '--ram', 'laptop', '--threads', '2'])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^budget 8,000,000,000 bytes \(the preset laptop\); the smallest that works is 4,3/
    )
    for (const component of [
      'Node',
      'KDA states',
      'MLA latents',
      'scratch',
      'trunk ring',
      'expert cache',
      'unused'
    ])
      expect(stdout).toMatch(new RegExp(`^${component} +[\\d,]+  .`, 'm'))
    expect(stdout).toMatch(/A token reads 13\d\.\d\d GB/)
    expect(stdout).toMatch(/about 6\d\.\d\d s\/token; the disk binds\.\n$/)
  })

  test('prints one object with --json', async () => {
    const plan = await planOf('--ram', '32GB')
    expect(plan.ok).toBe(true)
    expect(plan.budget_bytes).toBe(32e9)
    expect(plan.terms.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(plan.planned_bytes)
    expect(plan.planned_bytes).toBeLessThanOrEqual(32e9)
    expect(plan.forecast.binds_on).toBe('disk')
  })

  test.each([
    ['8GB', 8e9],
    ['8', 8e9],
    ['7.5GiB', 7.5 * 2 ** 30],
    ['9000MB', 9e9],
    ['8192mib', 2 ** 33],
    ['laptop', 8e9],
    ['desktop', 32e9],
    ['workstation', 64e9],
    ['workstation-96', 96e9],
    ['server', 128e9]
  ])('takes --ram %s', async (size, bytes) => {
    expect((await planOf('--ram', size)).budget_bytes).toBe(bytes)
  })

  test.each(['', '0', '-1', '8TB', 'huge', 'toString', '1e3', '8 GB more'])(
    'refuses --ram %j',
    async (size) => {
      const { code, stderr } = await k3(['plan', '--ram', size])
      expect(code).toBe(2)
      expect(stderr).toContain('one of auto, max, laptop, desktop, workstation, workstation-96, server')
    }
  )

  test('plans for this machine without --ram', async () => {
    const { budget_bytes } = await planOf('--model', modelDir)
    expect((await planOf('--model', modelDir, '--ram', 'max')).budget_bytes).toBeGreaterThan(budget_bytes)
  })

  test('refuses a budget that cannot work with the smallest that can, and exit code 4', async () => {
    const { code, stdout, stderr } = await k3(['plan', '--ram', '4GB'])
    expect([code, stdout]).toEqual([4, ''])
    const smallest = /the smallest that works is ([\d.]+) GB \[ERR_K3_MEMORY\]/.exec(stderr)![1]!
    expect((await planOf('--ram', `${smallest}GB`)).trunk.mode).toBe('stream')
    expect((await k3(['plan', '--ram', '8GB', '--cache-slots', '5000'])).code).toBe(4)
    expect((await k3(['plan', '--ram', '64GB', '--trunk', 'mmap'])).code).toBe(4)
    expect((await k3(['plan', '--cache-slots', '3', '--ram', '8GB'])).code).toBe(2)
  })

  test('every flag shows in the plan', async () => {
    const base = await planOf(...SMALL)
    expect((await planOf(...SMALL, '--context', '5000')).context_tokens).toBe(5000)
    expect((await planOf(...SMALL, '--chunk-tokens', '9')).chunk_tokens).toBe(9)
    expect((await planOf(...SMALL, '--cache-slots', '99')).cache_slots).toBe(99)
    const slots = [...SMALL, '--cache-slots', '500']
    expect((await planOf(...slots)).forecast).toMatchObject({
      policy: 'next-use',
      hit_rate: expect.closeTo(0.148, 2)
    })
    expect((await planOf(...slots, '--policy', 'lru')).forecast).toMatchObject({ policy: 'lru', hit_rate: 0 })
    expect((await planOf(...SMALL, '--prefix-cache', '2')).prefix_cache_bytes).toBe(2e9)
    expect((await planOf('--ram', '140GB', '--trunk', 'resident')).trunk.mode).toBe('resident')
    const statesOf = ({ terms }: Plan) => terms.find(({ component }) => component === 'KDA states')!.bytes
    expect(statesOf(await planOf(...SMALL, '--spec', 'auto'))).toBe(2 * statesOf(base))
    const seconds = (plan: Plan, what: string) => plan.forecast[`${what}_seconds`] as number
    expect(seconds(await planOf(...SMALL, '--disk-gbs', '4'), 'disk')).toBeCloseTo(
      seconds(base, 'disk') / 2,
      9
    )
    expect(seconds(await planOf(...SMALL, '--memory-gbs', '100'), 'memory')).toBeCloseTo(
      seconds(base, 'memory') / 2,
      9
    )
    expect(seconds(await planOf('--ram', '16GB', '--threads', '4'), 'compute')).toBeCloseTo(
      seconds(base, 'compute') / 2,
      9
    )
  })

  test('needs one config.json and nothing else', async () => {
    const dir = scratchFolder()
    const config = fixture('../docs/spec/config.k3.json')
    const fromFile = await planOf(...SMALL, '--config', config)
    expect(fromFile).toEqual(await planOf(...SMALL))
    expect((await k3(['plan', '--model', dir])).code).toBe(3)
    writeFileSync(path.join(dir, 'config.json'), '{')
    expect((await k3(['plan', '--model', dir])).code).toBe(3)
    expect((await k3(['plan', '--model', dir, '--config', config])).code).toBe(2)
    expect((await k3(['plan', '--context', '2000000'])).code).toBe(2)
  })

  // of the second and third, a token would take Infinity and 0 seconds
  test.each(['0', '1e-320', '1e300', '1e-10', '-1'])('refuses a speed of %s GB/s', async (speed) => {
    for (const flag of ['--disk-gbs', '--memory-gbs']) {
      const { code, stdout, stderr } = await k3(['plan', flag, speed])
      expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining('from 1e-9 to 1000000000')])
    }
  })

  test('prints no Infinity at the slowest speed it takes', async () => {
    const { code, stdout } = await k3(['plan', '--ram', '8GB', '--disk-gbs', '1e-9', '--memory-gbs', '1e-9'])
    expect([code, stdout.includes('Infinity')]).toEqual([0, false])
  })
})

describe('k3 inspect --numa', () => {
  test('shows the nodes of this machine', async () => {
    const { code, stdout } = await k3(['inspect', '--numa'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^node +bytes +free bytes +CPUs\n/)
    const { ok, nodes, verdict } = await k3Object(['inspect', '--numa', '--json'])
    expect([ok, stdout.endsWith(`${verdict}\n`)]).toEqual([true, true])
    expect((nodes as object[]).length).toBeLessThan(stdout.split('\n').length)
    expect((await k3(['inspect', '--numa', '--model', modelDir])).code).toBe(2)
  })

  test('says what there is to place', () => {
    const node = { node: 0, cpus: '0-3', totalBytes: 2e9, freeBytes: 1e9 }
    expect(inspectNuma([node]).text).toContain(
      '0  2,000,000,000  1,000,000,000  0-3\none node: there is nothing to place\n'
    )
    expect(inspectNuma([node, { ...node, node: 1 }]).text).toContain(
      '2 nodes: weights are spread over all of them'
    )
  })
})

describe('k3 generate', () => {
  const run = ['generate', '--threads', '1', 'The capital of France is', '--max-tokens', '3', '--json']

  test('keeps to --context and says where memory goes', async () => {
    const whole = await k3Object([...run, '--ram', '400MB'])
    expect(whole.memory).toMatchObject({ budget_bytes: 400e6, trunk: { mode: 'mmap' } })
    const short = await k3Object([...run, '--context', '7'])
    expect(short).toMatchObject({ finish_reason: 'length', memory: { context_tokens: 7 } })
    expect((short.ids as number[]).length).toBe(2)
    const { code, stderr } = await k3([...run, '--context', '5'])
    expect(code).toBe(2)
    expect(stderr).toContain('ERR_K3_CONTEXT_FULL')
  })

  test('takes memory from where --numa says', async () => {
    const { ids } = await k3Object([...run, '--numa', 'local'])
    if (readNumaNodes().length === 0) expect((await k3([...run, '--numa', 'interleave'])).code).toBe(2)
    else expect((await k3Object([...run, '--numa', 'interleave', '--trunk', 'resident'])).ids).toEqual(ids)
    expect((await k3([...run, '--numa', 'far'])).code).toBe(2)
  })

  test.skipIf(readNumaNodes().length !== 1)(
    'says that --numa interleave is in vain (needs one node)',
    async () => {
      const words = ['generate', 'Hi', '--max-tokens', '1', '--numa']
      expect((await k3([...words, 'interleave'])).stderr).toMatch(
        /^k3: numa interleave has no effect: .* one NUMA node$/m
      )
      for (const placement of ['auto', 'local'])
        expect((await k3([...words, placement])).stderr).not.toContain('NUMA')
    }
  )

  test('refuses memory that is not there, and memory that is too little', async () => {
    const much = await k3([...run, '--ram', '90000GB'])
    expect(much.code).toBe(4)
    expect(much.stderr).toMatch(/more than this machine can give now.*the smallest that works is 0\.\d+ GB/)
    expect((await k3([...run, '--ram', '50MB'])).code).toBe(4)
    expect((await k3(['self-test', '--ram', '50MB'])).code).not.toBe(0)
  })
})
