import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  cpSync,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { modelDir } from '@k3/demo-model'
import { openCheckpoint } from '@k3/engine/checkpoint'
import { backendInfo } from '@k3/uring'
import { afterAll, describe, expect, test } from 'vitest'
import { buildSandbox } from '../../native-kit/test-kit/sandbox.js'
import { Fixture } from '../src/bench/storage/fixture.js'
import { measureStorage } from '../src/bench/storage/measure.js'
import { Pattern } from '../src/bench/storage/pattern.js'
import { STORAGE_ROWS } from '../src/bench/storage/rows.js'
import { type ExpertSource, fixtureBytes, fixtureSource, ModelSource } from '../src/bench/storage/source.js'
import { benchStorageCommand } from '../src/commands/bench-storage.js'
import { exitCodeOf } from '../src/exit-codes.js'
import { k3, k3Object, Sink, scratchFolder, startK3 } from './k3.js'

// an expert of two blocks, at no round offsets
const small = { experts: 3, expertBytes: 2_500_008 }
const GB = '0.04' // five batches

/** Runs the command with small experts. */
const storage = async (args: readonly string[]): Promise<string> => {
  const stdout = new Sink()
  const terminal = {
    stdin: process.stdin,
    stdout,
    stderr: new Sink(),
    noColor: true,
    isDumb: false,
    exitCode: 0
  }
  await benchStorageCommand(terminal, () => small)
    .exitOverride()
    .parseAsync(args, { from: 'user' })
  return stdout.text
}

interface Report {
  readonly machine: { readonly cpu: string }
  readonly source: Record<string, unknown>
  readonly batch: typeof small
  readonly rounds: number
  readonly engine: { readonly row: string; readonly diskGBs: number | null }
  readonly rows: { readonly row: string; readonly refused: { code: string; message: string } | null }[]
}

const report = async (args: readonly string[]): Promise<Report> =>
  JSON.parse(await storage(['--json', ...args]))

const mounts: string[] = []
/** An empty file system of its own; null when this user may mount none. */
const mounted = (...args: readonly string[]): string | null => {
  const dir = scratchFolder()
  if (spawnSync('mount', [...args, 'none', dir]).status !== 0) return null
  mounts.push(dir)
  return dir
}
afterAll(() => {
  for (const dir of mounts) spawnSync('umount', [dir])
})
const mayMount = mounted('-t', 'tmpfs') !== null

const control = (progress: (line: string) => void = () => undefined, controller = new AbortController()) => ({
  signal: controller.signal,
  progress
})

const NUMBERS = [
  'medianGBs',
  'bestGBs',
  'ofSequential',
  'ofRandom',
  'firstExpertMs',
  'cpuShare',
  'fromStorage'
]
const READER = ['backend', 'direct', 'registeredBytes']

const places = [['the disk', scratchFolder()]]
if (existsSync('/dev/shm')) places.push(['memory', '/dev/shm'])

describe.each(places)('k3 bench storage on %s', (_, dir) => {
  test('prints every row as one object, and leaves nothing', async () => {
    const before = readdirSync(dir)
    const { machine, source, batch, rounds, engine, rows } = await report(['--dir', dir, '--gb', GB])
    expect(readdirSync(dir)).toEqual(before)
    expect(machine.cpu).toMatch(/, \d+ CPUs$/)
    const written = expect.stringMatching(/^(direct|buffered)$/)
    expect(source).toEqual({ kind: 'fixture', dir, bytes: fixtureBytes(5, small), written })
    expect([batch, rounds]).toEqual([small, 4])
    expect(rows.map(({ row }) => row)).toEqual([
      'buffered',
      'buffered-again',
      'io_uring-registered',
      'io_uring-plain',
      'pread',
      'raw-sequential',
      'raw-random'
    ])
    for (const row of rows) {
      expect(Object.keys(row)).toEqual(['row', ...READER, ...NUMBERS, 'refused'])
      const { medianGBs, bestGBs, firstExpertMs } = row as unknown as Record<string, number>
      if (row.refused !== null) expect(row).toMatchObject({ medianGBs: null, backend: null, direct: null })
      else expect(bestGBs! >= medianGBs! && medianGBs! > 0).toBe(true)
      if (row.row.startsWith('raw-')) expect(firstExpertMs).toBeNull()
    }
    expect(rows.find(({ row }) => row === engine.row)).toMatchObject({ refused: null })
  })
})

describe('k3 bench storage', () => {
  test('tells what came from a drive from what came from memory', async ({ skip }) => {
    const dir = scratchFolder()
    const { source, engine, rows } = await report(['--dir', dir, '--gb', GB])
    const byName = new Map(rows.map((row) => [row.row, row as unknown as Record<string, number | null>]))
    const { fromStorage } = byName.get('pread')!
    if (source.written !== 'direct' || !(Number(fromStorage) > 0.9))
      return skip(`no disk that the kernel counts: ${dir}`)
    expect(byName.get('buffered')!.fromStorage).toBeGreaterThan(0.5)
    expect(byName.get('buffered-again')!.fromStorage).toBeLessThan(0.5)
    expect(engine.diskGBs).toBe(byName.get(engine.row)!.medianGBs)
  })

  test('registers memory for the row of that name alone', async () => {
    const { rows } = await report(['--dir', scratchFolder(), '--gb', GB])
    const bytes = (name: string) =>
      (rows.find(({ row }) => row === name) as unknown as { registeredBytes: number | null }).registeredBytes
    const registered = rows.find(({ row }) => row === 'io_uring-registered')!
    if (registered.refused === null) expect(bytes('io_uring-registered')).toBeGreaterThan(0)
    for (const name of ['io_uring-plain', 'pread', 'buffered']) expect(bytes(name) ?? 0).toBe(0)
  })

  test('reads more batches with a larger --gb', async () => {
    const { source, rounds } = await report(['--dir', scratchFolder(), '--gb', '0.053'])
    expect([source.bytes, rounds]).toEqual([fixtureBytes(7, small), 6])
  })

  test('prints a table that ends with what to plan with', async () => {
    const text = await storage(['--dir', scratchFolder(), '--gb', GB])
    expect(text).toMatch(
      /^row +backend +GB\/s +best +of sequential +of random +first expert ms +CPU of a core +from storage$/m
    )
    expect(text).toMatch(/^raw-random +(io_uring|pread) +\d/m)
    expect(text).toMatch(/\nthe engine reads as [\w-]+ here[:;] .*k3 plan --disk-gbs( [\d.]+)?\n$/)
  })

  test('reads a checkpoint, and writes nothing', async () => {
    const before = readdirSync(modelDir)
    const { source, batch, rows } = (await k3Object([
      'bench',
      'storage',
      '--model',
      modelDir,
      '--json'
    ])) as unknown as Report
    expect(source).toEqual({ kind: 'model', dir: modelDir })
    expect(batch.experts).toBe((await openCheckpoint(modelDir)).config.moe.topK)
    expect(rows[0]).toMatchObject({ row: 'buffered', refused: null })
    expect(readdirSync(modelDir)).toEqual(before)
  })

  test.skipIf(!mayMount)(
    'names what a file system without direct reads refuses (needs to mount one)',
    async () => {
      const dir = mounted('-t', 'ramfs')!
      const { source, engine, rows } = await report(['--dir', dir, '--gb', GB])
      expect(source.written).toBe('buffered')
      for (const { row, refused } of rows)
        expect([row, refused]).toEqual([row, isDirectRow(row) ? directRefusal : null])
      expect(engine).toEqual({ row: 'buffered', diskGBs: null })
      const text = await storage(['--dir', dir, '--gb', GB])
      expect(text).toMatch(/^pread +refused$/m)
      expect(text).toMatch(/^pread is refused: .*O_DIRECT.*\[ERR_URING_DIRECT\]$/m)
      expect(text).toMatch(/no figure for k3 plan --disk-gbs\n$/)
    }
  )
})

const directRefusal = { code: 'ERR_URING_DIRECT', message: expect.stringMatching(/O_DIRECT/) }
const isDirectRow = (name: string) =>
  STORAGE_ROWS.some((row) => row.name === name && row.options.direct === 'on')

const sandbox = buildSandbox(scratchFolder())
const hasSandbox = sandbox !== null && backendInfo().backend === 'io_uring'

describe.skipIf(!hasSandbox)('k3 bench storage in a sandbox (needs io_uring, seccomp and a compiler)', () => {
  const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
  const rowsIn = (call: string, error: string) => {
    const command = [process.execPath, main, 'bench', 'storage', '--model', modelDir, '--json']
    const [program, ...args] = [...sandbox!('seccomp', call, error), ...command]
    const { status, stdout, stderr } = spawnSync(program!, args, { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
    const { rows } = JSON.parse(stdout) as Report
    return new Map(rows.map(({ row, refused }) => [row, refused]))
  }

  test('names io_uring where it is forbidden', () => {
    const refusals = rowsIn('setup', '1')
    const forbidden = { code: 'ERR_URING_BACKEND', message: expect.stringMatching(/EPERM/) }
    expect(refusals.get('io_uring-registered')).toEqual(forbidden)
    expect(refusals.get('io_uring-plain')).toEqual(forbidden)
    expect([refusals.get('pread'), refusals.get('buffered'), refusals.get('raw-random')]).toEqual([
      null,
      null,
      null
    ])
  })

  test('names registered memory where none may be', () => {
    const refusals = rowsIn('register', '22')
    const refusal = {
      code: 'ERR_BENCH_UNREGISTERED',
      message: expect.stringMatching(/^io_uring_register: EINVAL/)
    }
    expect(refusals.get('io_uring-registered')).toEqual(refusal)
    expect(refusals.get('io_uring-plain')).toBeNull()
  })
})

describe('k3 bench storage refuses', () => {
  const file = path.join(scratchFolder(), 'file')
  writeFileSync(file, '')
  test.each([
    [['--gb', 'many'], /gb.*decimal/],
    [['--gb', '1'], /--gb is 1, 4 batches of 16 experts take 1\.124 \[ERR_USAGE\]/],
    [['--gb', '70'], /--gb is 70, a fixture has at most 68 \[ERR_USAGE\]/],
    [['--dir', ''], /dir.*path/],
    [['--dir', file], /--dir .*file is no folder \[ERR_USAGE\]/],
    [['--dir', '/nowhere/at/all'], /--dir \/nowhere\/at\/all is no folder \[ERR_USAGE\]/],
    [['--dir', '/tmp', '--model', modelDir], /--dir and --model exclude each other \[ERR_USAGE\]/],
    [['--model', modelDir, '--gb', '0'], /--gb is 0, 4 batches of 4 experts take/],
    [['--seconds', '3'], /unknown option '--seconds'/],
    [['lunch'], /too many arguments/]
  ])('%j', async (args, message) => {
    const { code, stderr, stdout } = await k3(['bench', 'storage', ...args])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(message)
  })

  test('what is no checkpoint', async () => {
    const refused = await k3(['bench', 'storage', '--model', scratchFolder()])
    expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining('ERR_K3_CONFIG_FILE') })
  })

  test('a disk that is too small, before it writes', async () => {
    const dir = scratchFolder()
    const refusal = await Fixture.write(dir, 2 ** 52, control()).catch((error: Error) => error)
    expect(refusal).toMatchObject({ code: 'ERR_BENCH_SPACE', message: expect.stringContaining(dir) })
    expect([exitCodeOf(refusal), readdirSync(dir)]).toEqual([4, []])
  })

  test.skipIf(!mayMount)('a folder it may not write to (needs to mount one)', async () => {
    const dir = mounted('-t', 'tmpfs', '-o', 'ro')!
    const refusal = await storage(['--dir', dir, '--gb', GB]).catch((error: Error) => error)
    expect(refusal).toMatchObject({ code: 'ERR_BENCH_WRITE', message: expect.stringContaining('EROFS') })
    expect(exitCodeOf(refusal)).toBe(1)
  })
})

describe('the fixture', () => {
  test.skipIf(!mayMount)('is removed when the disk is full (needs to mount one)', async () => {
    const dir = mounted('-t', 'tmpfs', '-o', 'size=24m')!
    const fill = () => writeFileSync(path.join(dir, 'another'), Buffer.alloc(6e6))
    const failure = await Fixture.write(dir, 22e6, control(fill)).catch((error: Error) => error)
    expect(failure).toMatchObject({ code: 'ERR_BENCH_WRITE', message: expect.stringContaining('ENOSPC') })
    expect([exitCodeOf(failure), readdirSync(dir)]).toEqual([4, ['another']])
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129]
  ] as const)('is removed after %s', async (signal, expected) => {
    const dir = scratchFolder()
    const child = startK3(['bench', 'storage', '--dir', dir, '--gb', '1.2'])
    const end = once(child, 'close')
    const isWriting = () => readdirSync(dir).some((name) => statSync(path.join(dir, name)).size > 0)
    while (!isWriting()) await new Promise((resolve) => setTimeout(resolve, 2))
    child.kill(signal)
    const [code] = await end
    expect([code, readdirSync(dir)]).toEqual([expected, []])
  })

  test('is removed when reading is stopped', async () => {
    const dir = scratchFolder()
    const controller = new AbortController()
    const stop = (line: string) => {
      if (line.startsWith('round 2')) controller.abort(new Error('stopped by the test'))
    }
    const stopped = async () => {
      using fixture = await Fixture.write(dir, fixtureBytes(5, small), control())
      await measureStorage(fixtureSource(fixture, 5, small), control(stop, controller))
    }
    await expect(stopped()).rejects.toThrow('stopped by the test')
    expect(readdirSync(dir)).toEqual([])
  })

  test('has other bytes on every page, whatever it is cut into', () => {
    const pattern = new Pattern()
    for (const offset of [0, 304, 2 ** 24 - 3 - 10_000, 2 ** 32 + 12_345]) {
      const [whole, parts] = [Buffer.alloc(30_000), Buffer.alloc(30_000)]
      pattern.fill(whole, offset)
      for (let at = 0; at < parts.length; at += 7000) pattern.fill(parts.subarray(at, at + 7000), offset + at)
      expect(parts.equals(whole)).toBe(true)
      expect(pattern.firstDifference(whole, offset)).toBe(-1)
      expect(pattern.firstDifference(whole.subarray(4096), offset)).toBeGreaterThanOrEqual(0)
      for (const at of [0, 9_999, 10_000, 29_999]) {
        const damaged = Buffer.from(whole)
        damaged[at]! ^= 1
        expect(pattern.firstDifference(damaged, offset)).toBe(at)
      }
    }
  })
})

test.each([0, 1, 2, 3])('byte %i of a word of the pattern does not repeat at any distance', (byte) => {
  const bytes = Buffer.alloc(2 ** 23)
  new Pattern().fill(bytes, 0)
  for (let distance = 4; distance < bytes.length / 2; distance *= 2) {
    let same = 0
    for (let at = byte; at + distance < bytes.length; at += 4) {
      if (bytes[at] === bytes[at + distance]) same++
    }
    // one of 256 by chance
    expect([distance, same / ((bytes.length - distance) / 4) < 1 / 200]).toEqual([distance, true])
  }
})

describe('bytes that are not those of the file', () => {
  const damaged = async (damage: (descriptor: number) => void) => {
    using fixture = await Fixture.write(scratchFolder(), fixtureBytes(5, small), control())
    const descriptor = openSync(fixture.file, 'r+')
    damage(descriptor)
    closeSync(descriptor)
    return measureStorage(fixtureSource(fixture, 5, small), control()).then(
      () => null,
      (error: Error) => error
    )
  }

  test('are found, one in a fixture', async () => {
    const at = 304 + 7 * small.expertBytes - 1 // the last one of an expert
    const flip = (descriptor: number) => {
      const byte = Buffer.alloc(1)
      readSync(descriptor, byte, 0, 1, at)
      writeSync(descriptor, Buffer.of(byte[0]! ^ 1), 0, 1, at)
    }
    const error = await damaged(flip)
    const message = expect.stringMatching(
      new RegExp(`^[\\w-]+ read something else .* byte ${at} of .*k3-bench-storage`)
    )
    expect(error).toMatchObject({ code: 'ERR_BENCH_CORRUPT', message })
    expect(exitCodeOf(error)).toBe(5)
  })

  test('are found when a page has the bytes of another', async () => {
    const move = (descriptor: number) => {
      const page = Buffer.alloc(4096)
      readSync(descriptor, page, 0, 4096, 4096)
      writeSync(descriptor, page, 0, 4096, 10 * 4096)
    }
    expect(await damaged(move)).toMatchObject({
      code: 'ERR_BENCH_CORRUPT',
      message: expect.stringMatching(/byte 4096\d of/)
    })
  })

  test('are not found when the file is gone, which is named', async () => {
    const gone = async (source: ExpertSource) => {
      for (const file of source.files) rmSync(file)
      const error = await measureStorage(source, control()).catch((error: Error) => error)
      const message = expect.stringMatching(`^${source.files[0]} cannot be read any more: ENOENT`)
      expect(error).toMatchObject({ code: 'ERR_BENCH_READ', message })
      expect(exitCodeOf(error)).toBe(5)
    }
    using fixture = await Fixture.write(scratchFolder(), fixtureBytes(5, small), control())
    await gone(fixtureSource(fixture, 5, small))
    const dir = scratchFolder()
    cpSync(modelDir, dir, { recursive: true })
    await gone(new ModelSource(await openCheckpoint(dir), 4e9))
  })

  test('are not found in a checkpoint that goes away before the comparison', async () => {
    const dir = scratchFolder()
    cpSync(modelDir, dir, { recursive: true })
    const model = new ModelSource(await openCheckpoint(dir), 4e9)
    const range = model.batches[0]![0]!
    model.check('pread', Buffer.alloc(range.length), range)
    rmSync(model.files[range.file]!)
    await expect(model.finish(control())).rejects.toThrow(
      expect.objectContaining({ code: 'ERR_BENCH_READ', message: expect.stringContaining(dir) })
    )
  })

  test('are found in a checkpoint', async () => {
    const model = new ModelSource(await openCheckpoint(modelDir), 4e9)
    const range = model.batches[0]![0]!
    const bytes = Buffer.alloc(range.length)
    const descriptor = openSync(model.files[range.file]!, 'r')
    readSync(descriptor, bytes, 0, range.length, range.offset)
    closeSync(descriptor)
    model.check('pread', bytes, range)
    await model.finish(control())
    bytes[range.length - 1]! ^= 1
    model.check('pread', bytes, range)
    const message = expect.stringMatching(/^pread read something else .* differ from a plain read$/)
    await expect(model.finish(control())).rejects.toThrow(
      expect.objectContaining({ code: 'ERR_BENCH_CORRUPT', message })
    )
  })
})
