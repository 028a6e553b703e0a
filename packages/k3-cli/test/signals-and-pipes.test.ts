import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { k3, scratchFolder, startK3 } from './k3.js'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const onPosix = process.platform !== 'win32'

/** Starts the program and keeps what it writes. */
const start = (args: readonly string[], environment: Record<string, string> = {}) => {
  const child = startK3(args, environment)
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => {
      texts[name] += chunk.toString()
    })
  }
  const end = once(child, 'close').then(([code]) => ({ code: code as number | null, ...texts }))
  return { child, texts, end }
}

/** Waits until something is so; the timeout of the test ends it when it never is. */
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2))
}

beforeAll(() => {
  if (!existsSync(main)) throw new Error('dist/main.js is missing: build the package first')
})

describe('the k3 process', { timeout: 60_000 }, () => {
  test('answers and ends with 0', async () => {
    const run = start(['generate', 'The capital of France is', '--max-tokens', '3', '--threads', '1'])
    const { code, stdout, stderr } = await run.end
    expect([code, stdout]).toEqual([0, ' Paris\n'])
    expect(stderr).toContain('demo model')
  })

  test('reports an error in one line and ends with its code', async () => {
    const { code, stdout, stderr } = await start(['generate', 'Hi', '--model', '/nowhere/at/all']).end
    expect([code, stdout]).toEqual([3, ''])
    expect(stderr).toMatch(/^k3: .* \[ERR_K3_CONFIG_FILE\]\n$/)
  })

  test('answers a line before the next one is written', async () => {
    const { child, texts, end } = start(['tokens', '--jsonl'])
    child.stdin.write('"a"\n')
    await until(() => texts.stdout !== '')
    expect(JSON.parse(texts.stdout)).toHaveProperty('ids')
    child.stdin.end('"b"\n')
    expect(await end).toMatchObject({ code: 0, stderr: '' })
  })

  test.skipIf(!onPosix)('is quiet when its reader leaves (needs a shell with pipes)', async () => {
    const file = path.join(scratchFolder(), 'big.txt')
    writeFileSync(file, 'many words '.repeat(50_000))
    const commands = [
      `tokens ${file} --pieces`,
      `tokens ${file} --json`,
      `generate Once --temperature 2 --seed 1 --threads 1 --max-tokens 400 --quiet`,
      'inspect'
    ]
    for (const command of commands) {
      const pipe = `"${process.execPath}" "${main}" ${command} | head -c 1; exit "\${PIPESTATUS[0]}"`
      const { status, stderr } = spawnSync('bash', ['-c', pipe], { encoding: 'utf8', timeout: 60_000 })
      expect([command, status, stderr]).toEqual([command, 0, ''])
    }
  })

  test.skipIf(!onPosix)('goes on when nobody reads its stderr (needs a shell with pipes)', async () => {
    const command = `"${process.execPath}" "${main}" generate Hi --max-tokens 3 --threads 1 2> >(exec true)`
    const { status, stdout } = spawnSync('bash', ['-c', command], { encoding: 'utf8', timeout: 60_000 })
    expect([status, stdout.length > 1]).toEqual([0, true])
  })
})

describe('the k3 process, interrupted', { timeout: 60_000 }, () => {
  // a model whose end token is one of twenty thousand
  const dir = scratchFolder()
  const endless = ['generate', '--model', dir, '--ids', '0,1,2', '--threads', '1', '--max-tokens', '1000000']
  beforeAll(async () => {
    await k3([
      'synth',
      '--preset',
      'tiny',
      '--set',
      'vocab_size=20000',
      '--seed',
      '5',
      '--out',
      dir,
      '--quiet'
    ])
  })

  test.skipIf(!onPosix)('keeps the text at the first Ctrl-C (needs POSIX signals)', async () => {
    const { child, texts, end } = start(endless)
    await until(() => texts.stdout !== '')
    child.kill('SIGINT')
    const { code, stdout, stderr } = await end
    expect([code, stderr]).toEqual([130, expect.stringMatching(/, abort\n$/)])
    expect(stdout).toMatch(/^[\d ]+\n$/)
  })

  test.skipIf(!onPosix)('reports what it has with --json (needs POSIX signals)', async () => {
    const logits = path.join(scratchFolder(), 'logits.f32')
    const { child, end } = start([...endless, '--json', '--dump-logits', logits])
    await until(() => existsSync(logits) && statSync(logits).size > 0)
    child.kill('SIGINT')
    const { code, stdout } = await end
    expect([code, JSON.parse(stdout)]).toEqual([130, expect.objectContaining({ finish_reason: 'abort' })])
  })

  test.skipIf(!onPosix)('quits at the second Ctrl-C and at SIGTERM (needs POSIX signals)', async () => {
    const twice = start(endless)
    await until(() => twice.texts.stdout !== '')
    // the second one may find the process gone: it ends with 130 either way
    twice.child.kill('SIGINT')
    twice.child.kill('SIGINT')
    expect((await twice.end).code).toBe(130)
    const terminated = start(endless)
    await until(() => terminated.texts.stdout !== '')
    terminated.child.kill('SIGTERM')
    expect((await terminated.end).code).toBe(143)
  })

  test.skipIf(!onPosix)('leaves no folder of a self-test (needs POSIX signals)', async () => {
    const temporary = scratchFolder()
    const { child, texts, end } = start(['self-test', '--threads', '1'], { TMPDIR: temporary })
    await until(() => texts.stdout.includes('tiny-seed5 files'))
    expect(readdirSync(temporary).length).toBe(1)
    child.kill('SIGINT')
    expect((await end).code).toBe(130)
    expect(readdirSync(temporary)).toEqual([])
  })

  test.skipIf(!onPosix)('leaves no half file of a checkpoint (needs POSIX signals)', async () => {
    const out = path.join(scratchFolder(), 'out')
    const large = ['--preset', 'tiny', '--set', 'vocab_size=1000000', '--seed', '5', '--shard', '14']
    const { child, end } = start(['synth', ...large, '--out', out])
    await until(() => existsSync(out) && readdirSync(out).length > 0)
    child.kill('SIGINT')
    const { code, stderr } = await end
    expect([code, stderr]).toEqual([130, expect.stringContaining('stopped')])
    expect(readdirSync(out)).toEqual([])
  })
})
