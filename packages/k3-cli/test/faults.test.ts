import { spawn, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expectedFile, modelDir } from '@k3/demo-model'
import { describe, expect, test } from 'vitest'
import { buildFaultyIo, buildSandbox } from '../../native-kit/test-kit/sandbox.js'
import { scratchFolder, startK3 } from './k3.js'

const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8')) as {
  cases: { name: string; prompt_ids: number[]; output_ids: number[] }[]
}
const { prompt_ids: prompt, output_ids: output } = cases.find(({ name }) => name === 'raw-01')!
const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const tools = scratchFolder()
const sandbox = buildSandbox(tools)
const faultyIo = buildFaultyIo(tools)

/** Runs the built program to its end. One that hangs is killed, and has no exit code then. */
const ended = (args: readonly string[], { launcher = [] }: { readonly launcher?: readonly string[] }) => {
  const [command, ...rest] = [...launcher, process.execPath, main, ...args]
  const { status, stdout, stderr } = spawnSync(command!, rest, {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL'
  })
  return { status, stdout, stderr }
}

const streamed = ['--trunk', 'stream', '--cache-slots', '4', '--threads', '1']
const six = ['generate', '--ids', prompt.join(), '--max-tokens', '6', '--json', '--quiet', ...streamed]

const expectAnswer = ({ status, stdout, stderr }: ReturnType<typeof ended>) => {
  expect([status, stderr]).toEqual([0, ''])
  expect(JSON.parse(stdout)).toMatchObject({ ids: output.slice(0, 6) })
}

const expectRefusal = (outcome: ReturnType<typeof ended>, status: number, message: RegExp) => {
  expect({ ...outcome, stderr: '' }).toEqual({ status, stdout: '', stderr: '' })
  expect(outcome.stderr).toMatch(/^k3: .* \[ERR_\w+\]\n$/)
  expect(outcome.stderr).toMatch(message)
}

describe.skipIf(sandbox === null)(
  'k3 in a sandbox (needs seccomp and a compiler)',
  { timeout: 120_000 },
  () => {
    test.for(['1', '38'])(
      'answers where io_uring is refused, unless it was asked for (error %s)',
      (error, { skip }) => {
        const launcher = sandbox!('seccomp', 'setup', error)
        // Node 24 enters a ring of its own and ends the process when that is refused
        if (ended(['--version'], { launcher }).status !== 0)
          skip('this Node does not run in such a sandbox at all')
        expectAnswer(ended(six, { launcher }))
        expectRefusal(ended([...six, '--backend', 'io_uring'], { launcher }), 2, /ERR_URING_BACKEND/)
      }
    )

    test('answers where memory cannot be locked', () => {
      expectAnswer(ended(six, { launcher: sandbox!('memlock', '65536') }))
    })
  }
)

describe.skipIf(faultyIo === null)('k3 on a bad drive (needs a compiler)', { timeout: 120_000 }, () => {
  const byThreads = [...six, '--backend', 'pread']

  test('answers when reads come back short', () => {
    expectAnswer(ended(byThreads, { launcher: faultyIo!('short') }))
  })

  test('ends with 5 when a read fails, and says which', () => {
    const outcome = ended(byThreads, { launcher: faultyIo!('eio 40') })
    expectRefusal(
      outcome,
      5,
      /\.safetensors cannot be read: EIO at offset \d+.* language_model\..*\[ERR_URING_READ\]/
    )
  })

  test('answers through the page cache, and ends with 2 when that was ruled out', () => {
    expectAnswer(ended(six, { launcher: faultyIo!('indirect') }))
    expectRefusal(
      ended([...six, '--direct', 'on'], { launcher: faultyIo!('indirect') }),
      2,
      /ERR_URING_DIRECT/
    )
  })

  test('ends with 4 when the disk fills up under a checkpoint, of which no half file is left', () => {
    const dir = path.join(scratchFolder(), 'tiny')
    const synth = ['synth', '--preset', 'tiny', '--seed', '5', '--out', dir, '--quiet']
    const outcome = ended(synth, { launcher: faultyIo!('enospc 3') })
    expectRefusal(outcome, 4, /cannot write .*\.safetensors: ENOSPC.* \[ERR_SYNTH_WRITE\]/)
    const left = readdirSync(dir)
    expect(left.filter((name) => !/^model-\d+-of-\d+\.safetensors$/.test(name))).toEqual([])
    expect(ended(synth, {})).toEqual({ status: 0, stdout: '', stderr: '' })
    expect(ended(['inspect', '--model', dir, '--json'], {}).status).toBe(0)
  })
})

describe('k3 in a process with few descriptors', { timeout: 120_000 }, () => {
  test('answers, or ends with 4', () => {
    // more files than Node.js opens at once to load the program
    const also = Array.from({ length: 8 }, () => scratchFolder())
    for (const folder of also)
      for (const name of readdirSync(modelDir).filter((one) => one.endsWith('.safetensors')))
        symlinkSync(path.join(modelDir, name), path.join(folder, name))
    const statuses = new Set<number | null>()
    for (let most = 44; most <= 120 && !statuses.has(0); most += 6) {
      const launcher = ['sh', '-c', `ulimit -n ${most} && exec "$@"`, 'sh']
      if (ended(['--version'], { launcher }).status !== 0) continue
      const outcome = ended([...six, ...also.flatMap((folder) => ['--also', folder])], { launcher })
      // too few to load an addon, which node-gyp-build takes for an addon that is not there
      if (outcome.stderr.includes('ERR_NATIVE_LOAD')) continue
      statuses.add(outcome.status)
      if (outcome.status === 0) expectAnswer(outcome)
      else expectRefusal(outcome, 4, /EMFILE|Too many open files/)
    }
    expect(statuses).toEqual(new Set([0, 4]))
  })
})

describe('a shard that changes under k3', { timeout: 120_000 }, () => {
  const copy = () => {
    const dir = scratchFolder()
    cpSync(modelDir, dir, { recursive: true })
    return dir
  }
  const changes: Record<string, (file: string) => void> = {
    'is removed': (file) => rmSync(file),
    'is cut off': (file) => truncateSync(file, 100_000),
    'is replaced': (file) => {
      copyFileSync(file, `${file}.new`)
      renameSync(`${file}.new`, file)
    }
  }

  test.each(Object.keys(changes))('ends the run with 5 when it %s', async (what) => {
    const dir = copy()
    const shards = readdirSync(dir).filter((name) => name.endsWith('.safetensors'))
    const flags = ['--model', dir, '--ids', prompt.join(), '--max-tokens', '100000', '--context', '100000']
    const child = startK3(['generate', ...flags, '--quiet', ...streamed])
    let stderr = ''
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    child.stdout.once('data', () => changes[what]!(path.join(dir, shards.at(-1)!)))
    child.stdout.resume()
    const status = await new Promise((resolve) => child.once('close', resolve))
    expect([status, stderr]).toEqual([
      5,
      expect.stringMatching(/^k3: .*\.safetensors.* \[ERR_(K3_SHARD_CHANGED|URING_EOF)\]\n$/)
    ])
  })
})

test('Ctrl-C in the middle of reads ends a streamed run with 130', { timeout: 60_000 }, async () => {
  const child = spawn(
    process.execPath,
    [main, 'generate', '--ids', prompt.join(), '--max-tokens', '100000', '--context', '100000', ...streamed],
    { timeout: 60_000, killSignal: 'SIGKILL' }
  )
  child.stdout.once('data', () => child.kill('SIGINT'))
  child.stdout.resume()
  child.stderr.resume()
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(130)
})

test('three slots for layers of sixteen experts, four of which are chosen, are a usage error', () => {
  const outcome = ended([...six, '--cache-slots', '3'], {})
  expectRefusal(outcome, 2, /ERR_K3_CACHE_SLOTS/)
})
