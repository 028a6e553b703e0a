import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { modelDir } from '@k3/demo-model'
import { beforeAll, describe, expect, test } from 'vitest'
import { k3Object, scratchFolder } from './k3.js'
import { memoryGroup } from './memory-group.js'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const scratch = scratchFolder()
const tiny93 = path.join(scratch, 'tiny-93')
const PROMPT = Array.from({ length: 40 }, (_, i) => (37 * i) % 256).join(',')

interface Run {
  readonly peak_rss_bytes: number
  readonly memory: { readonly planned_bytes: number; readonly trunk: { readonly mode: string } }
}

/** One run in a process of its own, in a group that ends it when it takes 3 % more than its budget. */
const runIn = (model: string, bytes: number): { run: Run; logits: string; isEnforced: boolean } => {
  using group = process.platform === 'linux' ? memoryGroup(String(bytes), 1.03 * bytes) : null
  const logits = path.join(scratch, 'logits')
  const args = ['generate', '--model', model, '--ids', PROMPT, '--max-tokens', '24', '--threads', '2']
  const sized = [...args, '--ram', `${bytes / 1e6}MB`, '--dump-logits', logits, '--json', '--quiet']
  const command = [process.execPath, main, ...sized].map((word) => `'${word}'`).join(' ')
  const shell = group === null ? `exec ${command}` : `${group.enter} && exec ${command}`
  const run = JSON.parse(execFileSync('/bin/sh', ['-c', shell], { encoding: 'utf8' })) as Run
  return { run, logits: readFileSync(logits).toString('base64'), isEnforced: group !== null }
}

describe('the memory of a run', { timeout: 120_000 }, () => {
  beforeAll(async () => {
    await k3Object(['synth', '--preset', 'tiny-93', '--seed', '3', '--out', tiny93, '--json'])
  }, 120_000)

  test.each([
    ['the demo model', modelDir],
    ['tiny-93', tiny93]
  ])('stays within five budgets of %s, with the same bits', async (_, model) => {
    const plan = (await k3Object(['plan', '--model', model, '--ram', '1GB', '--threads', '2', '--json'])) as {
      smallest_bytes: number
    }
    const smallest = Math.ceil(plan.smallest_bytes / 1e6) * 1e6
    const budgets = [
      smallest,
      ...[1.05, 1.2, 1.5, 3].map((factor) => Math.ceil((factor * smallest) / 1e6) * 1e6)
    ]
    const runs = budgets.map((bytes) => ({ bytes, ...runIn(model, bytes) }))
    for (const { bytes, run, logits, isEnforced } of runs) {
      if (!isEnforced)
        console.warn('NOT ENFORCED BY THE KERNEL: this user may not make a control group with a limit')
      expect(run.memory.planned_bytes).toBeLessThanOrEqual(bytes)
      expect(run.peak_rss_bytes).toBeLessThanOrEqual(1.03 * bytes)
      expect(logits).toBe(runs[0]!.logits)
    }
    expect(new Set(runs.map(({ run }) => run.memory.trunk.mode)).size).toBeGreaterThan(1)
  })
})
