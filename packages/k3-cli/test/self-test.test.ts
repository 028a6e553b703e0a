import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expectedFile, modelDir } from '@k3/demo-model'
import { supportedIsas } from '@k3/vector-ops'
import { describe, expect, test } from 'vitest'
import { packageFile } from '../src/package-file.js'
import { fixture, k3, scratchFolder } from './k3.js'

interface Check {
  readonly name: string
  readonly ok: boolean
  readonly detail: string
}

const selfTest = async (...flags: string[]) => {
  const { code, stdout, stderr } = await k3(['self-test', '--threads', '1', '--json', ...flags])
  if (stdout === '') throw new Error(stderr)
  return { code, ...(JSON.parse(stdout) as { ok: boolean; passed: number; failed: number; checks: Check[] }) }
}

const failuresOf = (checks: readonly Check[]): readonly Check[] => checks.filter(({ ok }) => !ok)

const synthesized = async (preset: string, seed: string): Promise<string> => {
  const dir = scratchFolder()
  await k3(['synth', '--preset', preset, '--seed', seed, '--out', dir, '--quiet'])
  return dir
}

/** The number after `rel L2` in the detail of a check. */
const relL2 = (checks: readonly Check[]): number =>
  Number(/rel L2 (\S+),/.exec(checks.find(({ name }) => name.endsWith(' logits'))!.detail)![1])

describe('k3 self-test --ops', { timeout: 60_000 }, () => {
  test.each(supportedIsas())('finds all goldens within their tolerances on %s', async (isa) => {
    const { code, passed, checks } = await selfTest('--ops', fixture('ops'), '--isa', isa)
    expect(failuresOf(checks)).toEqual([])
    expect([code, passed]).toEqual([0, 50])
  })

  const copied = (edit: (rows: Record<string, unknown>[]) => void): string => {
    const dir = scratchFolder()
    cpSync(packageFile('data/ops'), dir, { recursive: true })
    const manifest = path.join(dir, 'manifest.json')
    const rows = JSON.parse(readFileSync(manifest, 'utf8')) as Record<string, unknown>[]
    edit(rows)
    writeFileSync(manifest, JSON.stringify(rows))
    return dir
  }
  test('does not pass when there is nothing to check', async () => {
    const { code, stdout, stderr } = await k3(['self-test', '--ops', copied((rows) => rows.splice(0))])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('states nothing to check')
  })

  const row = (rows: Record<string, unknown>[], op: string) => rows.find((each) => each.op === op)!

  test.each([
    [
      'an op it does not know',
      (rows) => (row(rows, 'rms_norm').op = 'rms_norm_2'),
      "there is no op 'rms_norm_2'"
    ],
    ['a tolerance that is not met', (rows) => (row(rows, 'situ_glu').outputs = tight), 'out.y rel '],
    ['another constant', (rows) => (row(rows, 'l2norm').const = { eps: 1e-2 }), 'out.y rel '],
    ['a constant that is missing', (rows) => (row(rows, 'l2norm').const = {}), 'no number const.eps'],
    ['a dimension that is missing', (rows) => (row(rows, 'mla_layer').dims = {}), 'no dims.geometry'],
    ['a file that is not there', (rows) => (row(rows, 'router').file = 'gone'), 'cannot open'],
    [
      'a file of another op',
      (rows) => (row(rows, 'expert').file = 'situ_glu-s21.safetensors'),
      'has no tensor z'
    ],
    [
      'an output the op does not have',
      (rows) => (row(rows, 'router').outputs = { 'out.w': tight['out.y'] }),
      'not computed'
    ],
    ['no outputs', (rows) => (row(rows, 'router').outputs = {}), ''],
    [
      'inputs that have to be refused and are not',
      (rows) => (row(rows, 'router').expect = 'reject'),
      'was accepted'
    ],
    [
      'inputs that are refused and should not be',
      (rows) => void delete rows.find((each) => each.expect)!.expect,
      '255'
    ]
  ] as [string, (rows: Record<string, unknown>[]) => unknown, string][])(
    'fails for %s and checks the rest',
    async (_, edit, detail) => {
      const { code, passed, failed, checks } = await selfTest('--ops', copied(edit))
      expect([code, passed, failed]).toEqual([1, 19, 1])
      expect(failuresOf(checks)[0]!.detail).toContain(detail)
    }
  )

  const tight = { 'out.y': { rel_l2: 1e-12, max_ulp: 1e-3 } }

  test('fails when a golden is changed by one bit of an exponent', async () => {
    const dir = copied(() => undefined)
    const file = path.join(dir, 'bf16_matvec-33x65-b5-s82.safetensors')
    const bytes = readFileSync(file)
    bytes[bytes.length - 1]! ^= 0x01
    writeFileSync(file, bytes)
    expect(await selfTest('--ops', dir)).toMatchObject({ code: 1, failed: 1 })
  })

  test.each([
    ['a folder without manifest', ''],
    ['a manifest that is no list', '{}'],
    ['a row that is no object', '[7]'],
    ['a row without an op', '[{"name": "a", "file": "b"}]'],
    ['an unknown expectation', '[{"name": "a", "file": "b", "op": "c", "expect": "joy"}]'],
    ['outputs that are no object', '[{"name": "a", "file": "b", "op": "c", "outputs": []}]'],
    ['a tolerance of another kind', '[{"name": "a", "file": "b", "op": "c", "outputs": {"y": {"abs": 1}}}]']
  ])('refuses %s', async (_, manifest) => {
    const dir = scratchFolder()
    if (manifest !== '') writeFileSync(path.join(dir, 'manifest.json'), manifest)
    const { code, stderr } = await k3(['self-test', '--ops', dir])
    expect([code, stderr]).toEqual([2, expect.stringContaining('manifest.json')])
  })
})

describe('k3 self-test --expected', { timeout: 60_000 }, () => {
  // what the engine reaches against float64, with room; the limits of the files are about three times as wide
  test.each([
    ['tiny', '5', 'tiny-seed5', 3e-5],
    ['tiny', '17', 'tiny-seed17', 3e-5],
    ['tiny-93', '4', 'tiny-93-seed4', 1.5e-4],
    ['tiny-93', '11', 'tiny-93-seed11', 1.5e-4]
  ])('holds %s seed %s against its file', async (preset, seed, name, limit) => {
    const dir = await synthesized(preset, seed)
    const flags = ['--model', dir, '--hash-files', '--expected', fixture(`expected/${name}.json`)]
    const { code, checks } = await selfTest(...flags)
    expect(failuresOf(checks)).toEqual([])
    expect([code, checks.map((check) => check.name.replace(`${name} `, ''))]).toEqual([
      0,
      ['files', 'argmax', 'logits', 'layers', 'experts', 'greedy']
    ])
    expect(relL2(checks)).toBeLessThan(limit)
  })

  test('gives the same details for every setting of the run', async () => {
    const dir = await synthesized('tiny', '5')
    const flags = ['--model', dir, '--expected', fixture('expected/tiny-seed5.json')]
    const { checks } = await selfTest(...flags)
    const other = await selfTest(...flags, '--chunk-tokens', '5', '--cache-slots', '4', '--isa', 'scalar')
    expect(other.checks).toEqual(checks)
    const none = await k3(['self-test', ...flags, '--cache-slots', '3'])
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('ERR_K3_CACHE_SLOTS')])
  })

  test('fails on every kind of statement for a model of another seed', async () => {
    const dir = await synthesized('tiny', '17')
    const expected = fixture('expected/tiny-seed5.json')
    const { code, checks } = await selfTest('--model', dir, '--expected', expected, '--hash-files')
    expect([code, checks.map(({ ok }) => ok)]).toEqual([1, [false, false, false, false, false, false]])
  })

  const edited = (
    edit: (file: Record<string, unknown>) => void,
    source = fixture('expected/tiny-seed5.json')
  ) => {
    const value = JSON.parse(readFileSync(source, 'utf8')) as Record<string, unknown>
    edit(value)
    const file = path.join(scratchFolder(), 'expected.json')
    writeFileSync(file, JSON.stringify(value))
    return file
  }

  test('reads the form with every 64th logit and the highest 64', async () => {
    const dir = await synthesized('tiny', '5')
    const sparse = (wrong: number) =>
      edited((file) => {
        const logits = file.last_logits as number[]
        const ids = logits.map((_, id) => id).sort((a, b) => logits[b]! - logits[a]!)
        delete file.last_logits
        file.last_logits_every_64th = logits.filter((_, id) => id % 64 === 0)
        file.last_top64_ids = ids.slice(0, 64)
        file.last_top64_logits = ids.slice(0, 64).map((id, i) => logits[id]! + (i === 63 ? wrong : 0))
      })
    expect((await selfTest('--model', dir, '--expected', sparse(0))).code).toBe(0)
    const { checks } = await selfTest('--model', dir, '--expected', sparse(0.1))
    expect(failuresOf(checks).map(({ name }) => name)).toEqual(['tiny-seed5 logits'])
  })

  test.each([
    ['a file that is not there', () => '/nowhere/at/all'],
    ['a file of another kind', () => fixture('tokenizer/vectors.json')],
    ['a tolerance it does not know', () => edited((file) => (file.tolerance = { argmax: 'roughly' }))],
    ['a list that is none', () => edited((file) => (file.prompt = 'hello'))],
    ['numbers that are none', () => edited((file) => (file.greedy = ['1']))],
    [
      'a demo case of an unknown kind',
      () => edited((file) => ((file.cases as { kind: string }[])[0]!.kind = 'sung'), expectedFile)
    ]
  ])('refuses %s', async (_, file) => {
    const { code, stdout } = await k3(['self-test', '--model', modelDir, '--expected', file()])
    expect([code, stdout]).toEqual([2, ''])
  })

  test.each([
    ['--expected without --model', ['--expected', 'a']],
    ['--model without --expected', ['--model', 'a']],
    ['--hash-files without --expected', ['--hash-files']],
    ['--cache-slots for ops', ['--ops', fixture('ops'), '--cache-slots', '8']],
    ['--chunk-tokens for ops', ['--ops', fixture('ops'), '--chunk-tokens', '8']],
    ['--trunk for ops', ['--ops', fixture('ops'), '--trunk', 'stream']],
    ['--ram for ops', ['--ops', fixture('ops'), '--ram', '8GB']],
    ['--context for ops', ['--ops', fixture('ops'), '--context', '8']],
    ['--numa for ops', ['--ops', fixture('ops'), '--numa', 'local']],
    [
      '--hash-files for a file without hashes',
      ['--hash-files', '--model', modelDir, '--expected', expectedFile]
    ]
  ])('refuses %s', async (_, flags) => {
    expect((await k3(['self-test', ...flags])).code).toBe(2)
  })

  test('fails for a demo case that comes out otherwise', async () => {
    interface Case {
      prompt_ids: number[]
      output_ids: number[]
      output_text: string
      margins: number[]
      parsed?: { content: string }
    }
    const file = edited((value) => {
      const all = value.cases as Case[]
      const [a, b, c, d, e] = [all[0]!, all[1]!, all[3]!, all[14]!, all[4]!]
      a.prompt_ids = a.prompt_ids.slice(1)
      b.output_ids[5]! += 1
      c.output_text += '!'
      d.parsed!.content += '!'
      // beyond a margin that small, nothing is certain
      e.margins[3] = 0.005
      e.output_ids[3]! += 1
      value.cases = [a, b, c, d, e]
    }, expectedFile)
    const { checks } = await selfTest('--model', modelDir, '--expected', file)
    expect(checks.map(({ ok }) => ok)).toEqual([false, false, false, false, true])
  })
})

describe('k3 self-test', { timeout: 120_000 }, () => {
  test('passes without options, in lines', async () => {
    const { code, stdout, stderr } = await k3(['self-test', '--threads', '1'])
    const lines = stdout.trimEnd().split('\n')
    expect(lines.filter((line) => line.startsWith('FAIL'))).toEqual([])
    expect([code, stderr, lines.at(-1)]).toEqual([0, '', '71 passed, 0 failed'])
    expect(lines.filter((line) => line.startsWith('ok    demo ')).length).toBe(45)
    expect(stdout).toMatch(/^ok {4}demo perplexity: 1\.433106\d\d over 3198 tokens/m)
    expect(stdout).toContain('ok    tiny-seed5 files: 16 files, SHA-256 equal')
  })

  test('ships goldens and expectations that are those of the fixtures', () => {
    const folder = packageFile('data/ops')
    const shipped = readdirSync(folder).filter((name) => name.endsWith('.safetensors'))
    for (const name of shipped) {
      expect(readFileSync(path.join(folder, name)).equals(readFileSync(fixture(`ops/${name}`))), name).toBe(
        true
      )
    }
    const read = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as unknown
    const all = read(fixture('ops/manifest.json')) as { file: string }[]
    expect(read(path.join(folder, 'manifest.json'))).toEqual(all.filter(({ file }) => shipped.includes(file)))
    expect(read(packageFile('data/tiny-seed5.json'))).toEqual(read(fixture('expected/tiny-seed5.json')))
  })
})
