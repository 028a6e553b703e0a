import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { availableMemory } from 'node:process'
import { geometryOf } from '@k3/synth'
import { supportedIsas } from '@k3/vector-ops'
import { describe, expect, test } from 'vitest'
import { sameBits } from '../src/bench/errors.js'
import type { BenchSizes } from '../src/bench/sizes.js'
import { releasedSizes } from '../src/bench/sizes.js'
import { benchKernelsCommand, kernelWorks } from '../src/commands/bench-kernels.js'
import { k3, Sink, scratchFolder, startK3 } from './k3.js'

const small = (): BenchSizes => ({
  geometry: geometryOf('tiny'),
  positions: [16, 70],
  prefill: 5,
  expertColumns: [3],
  trunkColumns: [2],
  cacheBytes: 65_536
})

/** Runs the command at small sizes. */
const kernels = async (args: readonly string[]) => {
  const [stdout, stderr] = [new Sink(), new Sink()]
  const stdin = process.stdin
  const terminal = { stdin, stdout, stderr, noColor: true, isDumb: false, exitCode: 0 }
  const command = benchKernelsCommand(terminal, small).exitOverride()
  await command.parseAsync(['--seconds', '1', ...args], { from: 'user' })
  return { stdout: stdout.text, stderr: stderr.text }
}

interface Report {
  readonly machine: {
    readonly readGBs: Record<string, number>
    readonly fmaGFlops: number
    readonly cpu: string
  }
  readonly rows: Record<string, unknown>[]
}

const report = async (args: readonly string[]): Promise<Report> =>
  JSON.parse((await kernels(['--json', ...args])).stdout)

describe('k3 bench kernels', { timeout: 60_000 }, () => {
  test('has the stable names at the sizes of the released model', () => {
    const names = new Set(kernelWorks(releasedSizes(), 2).map(({ name }) => name))
    const stable = [
      'mxfp4-matvec-3072x3584',
      'mxfp4-matvec-3584x3072',
      ...[8, 32, 64].map((columns) => `mxfp4-gemm-3072x3584x${columns}`),
      'expert-mlp-16',
      'bf16-matvec-163840x7168',
      'bf16-matvec-12288x7168',
      'bf16-gemm-12288x7168x16',
      'bf16-gemm-12288x7168x64',
      'kda-step',
      'kda-prefill-64',
      ...[1024, 8192, 32768].map((positions) => `mla-decode-${positions}`)
    ]
    const others = ['router', 'latent-down', 'latent-up', 'shared-experts', 'fork-join']
    const rows = ['residual-mix', 'rms-norm', 'situ'].flatMap((name) => [name, `${name}-64`])
    expect([...names].sort()).toEqual([...stable, ...others, ...rows].sort())
  })

  test('has rows with 8-bit activations beside the exact ones', () => {
    const works = kernelWorks(releasedSizes(), 2)
    const int8 = new Set(works.filter(({ mode }) => mode === 'int8').map(({ name }) => name))
    expect([...int8]).toEqual(['mxfp4-matvec-3072x3584', 'mxfp4-matvec-3584x3072', 'expert-mlp-16'])
  })

  test('prints the machine and every row as one object', async () => {
    const { machine, rows } = await report(['--threads', '2'])
    expect(Object.keys(machine)).toEqual(['readGBs', 'fmaGFlops', 'cpu'])
    expect(Object.keys(machine.readGBs)).toEqual(['1', '2'])
    expect(rows.map(({ work }) => work)).toEqual(kernelWorks(small(), 2).map(({ name }) => name))
    for (const row of rows) {
      expect(Object.keys(row)).toEqual([
        'work',
        'mode',
        'cache',
        'threads',
        'unit',
        'median',
        'best',
        'limit',
        'fraction',
        'isa',
        'runs'
      ])
      if (row.work !== 'fork-join') expect(row.median, String(row.work)).toBeGreaterThan(0)
    }
    expect(rows).toContainEqual(
      expect.objectContaining({
        work: 'mxfp4-matvec-64x96',
        mode: 'exact',
        cache: 'cold',
        threads: 1,
        unit: 'GB/s'
      })
    )
  })

  test('takes each number of threads once', async () => {
    const { machine, rows } = await report(['--threads', '1'])
    expect(Object.keys(machine.readGBs)).toEqual(['1'])
    expect(new Set(rows.map(({ threads }) => threads))).toEqual(new Set([1]))
  })

  test('runs on the instruction set that is asked for', async () => {
    for (const isa of supportedIsas()) {
      const { rows } = await report(['--isa', isa, '--threads', '1'])
      expect(new Set(rows.map((row) => row.isa))).toEqual(new Set([isa]))
    }
  })

  test('measures for as long as it is told, and no row more than 50 times', async () => {
    const runs = async (seconds: string) => {
      const { rows } = await report(['--threads', '1', '--seconds', seconds])
      return rows.map((row) => row.runs as number)
    }
    expect(new Set(await runs('1000'))).toEqual(new Set([50]))
    expect(Math.min(...(await runs('1')))).toBeLessThan(50)
  })

  test('writes a table, and the rows as comma-separated values beside it', async () => {
    const file = path.join(scratchFolder(), 'rows.csv')
    const { stdout } = await kernels(['--csv', file, '--threads', '1'])
    expect(stdout).toMatch(/^work +mode +cache +threads +median +best +limit +unit +of limit$/m)
    expect(stdout).toMatch(/^expert-mlp-4 +exact +cold +1 /m)
    const [machine, head, read, fma, ...rows] = readFileSync(file, 'utf8').trimEnd().split('\n')
    expect(machine).toMatch(/^# .+ CPUs, Node /)
    expect(head).toBe('work,mode,cache,threads,unit,median,best,limit,fraction,isa,runs')
    expect([read, fma]).toEqual([
      expect.stringMatching(/^machine-read,,,1,GB\/s,,[\d.]+,,,,$/),
      expect.stringMatching(/^machine-fma,,,,GFLOP\/s,,[\d.]+,,,,$/)
    ])
    expect(rows).toHaveLength(kernelWorks(small(), 1).length)
  })

  test('leaves a file as it was when the run fails', async () => {
    const dir = scratchFolder()
    const file = path.join(dir, 'rows.csv')
    writeFileSync(file, 'of another day')
    const foreign = process.arch === 'arm64' ? 'avx2' : 'neon'
    const refusal = expect.objectContaining({ code: 'ERR_ISA_UNSUPPORTED' })
    await expect(kernels(['--csv', file, '--isa', foreign])).rejects.toThrow(refusal)
    expect([readdirSync(dir), readFileSync(file, 'utf8')]).toEqual([['rows.csv'], 'of another day'])
  })

  test('says when threads share CPUs', async () => {
    const threads = String(availableParallelism() + 1)
    expect((await kernels(['--threads', threads])).stderr).toContain(`${threads} threads share`)
  })
})

describe('k3 bench kernels refuses', () => {
  test.each([
    [['--threads', '0'], /threads.*at least 1/],
    [['--threads', '2000'], /at most 1024/],
    [['--isa', 'mmx'], /isa.*Allowed choices/],
    [['--seconds', '0'], /seconds.*at least 1/],
    [['--csv', ''], /csv.*path/],
    [['--csv', '/nowhere/rows.csv'], /\/nowhere\/rows\.csv cannot be written.*\[ERR_BENCH_WRITE\]/],
    [['--rows', 'all'], /unknown option '--rows'/],
    [['kda-step'], /too many arguments/]
  ])('%j', async (args, message) => {
    const { code, stderr, stdout } = await k3(['bench', 'kernels', ...args])
    expect([code, stdout]).toEqual([message.source.includes('ERR_BENCH') ? 1 : 2, ''])
    expect(stderr).toMatch(message)
  })

  test('a bench of nothing', async () => {
    expect(await k3(['bench'])).toMatchObject({ code: 2, stdout: '' })
    expect(await k3(['bench', 'lunch'])).toMatchObject({ code: 2, stdout: '' })
  })

  test('a result that is not the scalar kernel’s', () => {
    const [one, two] = [Float32Array.of(1, 2), Float32Array.of(1, 2.0000002)]
    const refusal = expect.objectContaining({ code: 'ERR_BENCH_WRONG' })
    expect(() => sameBits('row', one, one)).not.toThrow()
    expect(() => sameBits('row', one, two)).toThrow(refusal)
    expect(() => sameBits('row', Float32Array.of(NaN), Float32Array.of(NaN))).toThrow(refusal)
    expect(() => sameBits('row', new Float32Array(2), new Float32Array(2))).toThrow(refusal)
  })
})

const canFill = availableMemory() > 5e9

test.skipIf(!canFill)(
  'Ctrl-C ends k3 bench kernels (needs 5 GB of memory)',
  { timeout: 60_000 },
  async () => {
    const child = startK3(['bench', 'kernels', '--threads', '1'])
    // by then it is in the middle of filling memory or of measuring
    await new Promise((resolve) => setTimeout(resolve, 1000))
    child.kill('SIGINT')
    const [, signal] = await once(child, 'close')
    expect(signal).toBe('SIGINT')
  }
)

test.skipIf(!canFill)(
  'Ctrl-C leaves nothing of --csv (needs 5 GB of memory)',
  { timeout: 60_000 },
  async () => {
    const dir = scratchFolder()
    const child = startK3(['bench', 'kernels', '--threads', '1', '--csv', path.join(dir, 'rows.csv')])
    const closed = once(child, 'close')
    while (readdirSync(dir).length === 0) await new Promise((resolve) => setTimeout(resolve, 2))
    child.kill('SIGINT')
    expect([(await closed)[1], readdirSync(dir)]).toEqual(['SIGINT', []])
  }
)
