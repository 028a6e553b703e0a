import { parseConfig } from '@k3/engine/checkpoint'
import { configText, geometryOf } from '@k3/synth'
import { describe, expect, test } from 'vitest'
import { BlockTimes } from '../src/bench/block-times.js'
import { BLOCKS, tokenBytes } from '../src/bench/token-bytes.js'
import { k3, k3Object } from './k3.js'

interface BlockRow {
  readonly block: string
  readonly seconds: number
  readonly share: number
  readonly bytes: number
}

interface Report {
  readonly machine: { readonly readGBs: Record<string, number>; readonly cpu: string }
  readonly decode: Record<string, number> & { readonly blocks: BlockRow[] }
  readonly prefill: Record<string, number> & { readonly blocks: BlockRow[] }
}

const decode = async (args: readonly string[]): Promise<Report> =>
  (await k3Object(['bench', 'decode', '--json', '--threads', '1', ...args])) as unknown as Report

describe('the bytes of a token', () => {
  test('are those of the released model', () => {
    const config = parseConfig(configText(geometryOf('full')), 'config.json')
    const bytes = tokenBytes(config, config.layerCount, 0)
    const gigabytes = (block: (typeof BLOCKS)[number]) => (bytes.get(block) ?? 0) / 1e9
    expect(gigabytes('experts')).toBeCloseTo(25.8, 1)
    expect(gigabytes('lm_head')).toBeCloseTo(2.35, 2)
    const states = (2 * 69 * 4 * 96 * 128 * 128) / 1e9
    const trunk = ['attention', 'dense', 'router', 'latent', 'shared', 'residual'] as const
    expect(trunk.reduce((sum, block) => sum + gigabytes(block), -states)).toBeCloseTo(108.8, 1)
  })

  test('grow with the context by the latents', () => {
    const config = parseConfig(configText(geometryOf('tiny')), 'config.json')
    const [none, some] = [0, 10].map((position) => tokenBytes(config, 4, position).get('attention')!)
    expect(some! - none!).toBe(10 * 4 * (config.mla.latentRank + config.mla.sharedKeyDim))
  })
})

describe('the time of a token', () => {
  test('is shared out among the blocks, and what no span covers is orchestration', () => {
    const times = new BlockTimes(
      new Map([
        ['router', 10],
        ['latent', 60],
        ['shared', 90]
      ])
    )
    const span = (name: string, startMs: number, endMs: number) =>
      times.add({ name, layer: 1, startMs, endMs })
    span('attention.kda', 0, 5)
    span('moe.project', 5, 15)
    span('experts.submit', 15, 16)
    span('experts.wait', 16, 18)
    span('experts.mlp', 18, 20)
    span('trunk.wait', 20, 21)
    span('head.logits', 21, 24)
    expect(times.split(30)).toEqual(
      new Map([
        ['attention', 5],
        ['router', 1],
        ['latent', 3],
        ['shared', 6],
        ['io_wait', 3],
        ['experts', 2],
        ['lm_head', 3],
        ['orchestration', 7]
      ])
    )
  })
})

describe('k3 bench decode', { timeout: 60_000 }, () => {
  test('prints the machine, a token and a prompt by block', async () => {
    const { machine, decode: token, prefill } = await decode(['--tokens', '3', '--prompt-tokens', '5'])
    expect(Object.keys(machine.readGBs)).toEqual(['1'])
    expect([token.tokens, prefill.tokens]).toEqual([3, 5])
    const names = token.blocks.map(({ block }) => block)
    expect(names).toEqual(BLOCKS.filter((block) => block !== 'lookahead'))
    const sum = (rows: readonly BlockRow[], of: 'seconds' | 'share' | 'bytes') =>
      rows.reduce((total, row) => total + row[of], 0)
    expect(sum(token.blocks, 'seconds')).toBeCloseTo(token.secondsPerToken!, 9)
    expect(sum(token.blocks, 'share')).toBeCloseTo(1, 9)
    expect(sum(token.blocks, 'bytes')).toBe(token.bytes)
    expect(sum(prefill.blocks, 'seconds')).toBeCloseTo(prefill.seconds!, 9)
    expect(token.floor! / token.secondsPerToken!).toBeCloseTo(token.fraction!, 9)
  })

  test('takes the flags of a run', async () => {
    const { decode: two } = await decode(['--tokens', '1', '--prompt-tokens', '1', '--layers', '2'])
    const { decode: all } = await decode(['--tokens', '1', '--prompt-tokens', '1', '--lookahead', '2'])
    expect(two.bytes).toBeLessThan(all.bytes!)
    expect(two.warmUpTokens).toBe(32)
    expect(all.blocks.map(({ block }) => block)).toContain('lookahead')
  })

  test('prints a table', async () => {
    const { stdout } = await k3(['bench', 'decode', '--threads', '1', '--tokens', '1'])
    expect(stdout).toMatch(/^block +ms +share +GB +floor ms +of floor$/m)
    expect(stdout).toMatch(/^orchestration +[\d.]+ +[\d.]+ %/m)
    expect(stdout).toMatch(/^prefill: 64 tokens in /m)
  })

  test.each([
    [['--tokens', '0'], 2, /tokens.*at least 1/],
    [['--prompt-tokens', '1e3'], 2, /prompt-tokens.*whole number/],
    [['--prompt-tokens', '40', '--context', '32'], 2, /context has room for 32.*\[ERR_USAGE\]/],
    [['--tokens', '999999999'], 2, /are \d+, the context has room for \d+.*\[ERR_USAGE\]/],
    [['--model', '/nowhere/at/all'], 3, /\[ERR_K3_CONFIG_FILE\]/],
    [['--seconds', '3'], 2, /unknown option '--seconds'/]
  ])('refuses %j', async (args, code, message) => {
    const refused = await k3(['bench', 'decode', ...args])
    expect([refused.code, refused.stdout]).toEqual([code, ''])
    expect(refused.stderr).toMatch(message)
  })
})
