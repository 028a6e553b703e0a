import { spawnSync } from 'node:child_process'
import { readdirSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { backendInfo } from '@k3/uring'
import { describe, expect, it } from 'vitest'
import { buildFaultyIo, buildSandbox } from '../../native-kit/test-kit/sandbox.js'
import type { ModelOptions } from '../src/model-options.js'
import { demoCase, temporaryFolder } from './demo-cases.js'

const { prompt, output } = demoCase('raw-01')
const ANSWER = output.slice(0, 6)
const folder = temporaryFolder()
const sandbox = buildSandbox(folder)
const faultyIo = buildFaultyIo(folder)
const engine = new URL('../dist/index.js', import.meta.url).href

/** Opens the demo model and asks it twice, or opens it again if that fails; one line of output for each outcome. */
const program = (options: ModelOptions) => `
  const failed = ({ code, file, tensor, offset, needBytes, message }) =>
    ({ code, file, tensor, offset, needBytes, message })
  const report = (line) => console.log(JSON.stringify(line))
  const ask = (model) => model.generate({ ids: ${JSON.stringify(prompt)}, maxTokens: 6 })
  for (let asked = 0, tries = 0; asked === 0 && tries < 2; tries++)
    try {
      const { openModel } = await import(${JSON.stringify(engine)})
      const model = await openModel(${JSON.stringify(modelDir)}, ${JSON.stringify({ threads: 1, ...options })})
      for (; asked < 2; asked++)
        report(await ask(model).then(({ ids }) => ({ ids, backend: model.backend }), failed))
      await model[Symbol.asyncDispose]()
    } catch (error) {
      report(failed(error))
    }`

/** What came of it. A process that hangs is killed, and has no exit code then. */
const run = (options: ModelOptions, { launcher = [] }: { readonly launcher?: readonly string[] }) => {
  const [command, ...args] = [
    ...launcher,
    process.execPath,
    '--input-type=module',
    '-e',
    program(options)
  ] as const
  const { status, signal, stdout, stderr } = spawnSync(command!, args, {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL'
  })
  expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: '' })
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

const answers = (backend: RegExp) => {
  const answer = { ids: ANSWER, backend: expect.stringMatching(backend) }
  return [answer, answer]
}

const whyNot = () => {
  if (sandbox === null) return 'no C compiler here, or no seccomp for this user'
  const { backend, ioUringRefusal } = backendInfo()
  return backend === 'io_uring' ? undefined : `no io_uring here: ${ioUringRefusal}`
}
const reason = whyNot()
if (reason !== undefined) it(`the sandbox tests need more: ${reason}`, ({ skip }) => skip(reason))

// Node 24 enters a ring of its own and ends the process when that is refused.
const nodeRuns = (launcher: string[]) =>
  spawnSync(launcher[0]!, [...launcher.slice(1), process.execPath, '-e', '']).status === 0

describe.skipIf(reason !== undefined)('a model where io_uring is refused (needs seccomp)', () => {
  const streamed = { trunk: 'stream', cacheSlots: 4, lookahead: 2 } as const

  it.for([
    ['setup', 1],
    ['setup', 38],
    ['enter', 1]
  ] as const)('gives the same tokens through threads (%s, error %i)', ([call, error], { skip }) => {
    const launcher = sandbox!('seccomp', call, String(error))
    if (!nodeRuns(launcher)) skip('this Node does not run in such a sandbox at all')
    expect(run(streamed, { launcher })).toEqual(answers(/^pread, /))
    const refusal = expect.objectContaining({
      code: 'ERR_URING_BACKEND',
      message: expect.stringMatching(/io_uring is not to be had/)
    })
    expect(run({ ...streamed, backend: 'io_uring' }, { launcher })).toEqual([refusal, refusal])
  })

  it('gives the same tokens when buffers cannot be registered', () => {
    expect(run(streamed, { launcher: sandbox!('seccomp', 'register', '22') })).toEqual(answers(/^io_uring, /))
  })

  it.each(['65536', String(3 * 2 ** 20)])('gives the same tokens when %s bytes may be locked', (bytes) => {
    for (const trunk of ['stream', 'resident'] as const)
      expect(run({ ...streamed, trunk }, { launcher: sandbox!('memlock', bytes) })).toEqual(
        answers(/^io_uring, /)
      )
  })
})

describe.skipIf(faultyIo === null)('a model on a drive in trouble (needs a C compiler)', () => {
  const threads = { backend: 'pread', cacheSlots: 4 } as const
  const ways = [
    { ...threads, trunk: 'stream', direct: 'auto' },
    { ...threads, trunk: 'resident', direct: 'off' },
    { ...threads, trunk: 'mmap', direct: 'off', lookahead: 4 }
  ] as const

  it.each(ways)('whose every other read comes back short gives the same tokens ($trunk)', (options) => {
    expect(run(options, { launcher: faultyIo!('short') })).toEqual(answers(/^pread, /))
  })

  it('that takes no direct reads gives the same tokens, or is refused when they were asked for', () => {
    for (const backend of ['pread', 'auto'] as const) {
      const options = { cacheSlots: 4, trunk: 'stream', backend } as const
      const launcher = faultyIo!('indirect')
      expect(run(options, { launcher })).toEqual(answers(/, through the page cache$/))
      const refusal = expect.objectContaining({
        code: 'ERR_URING_DIRECT',
        file: expect.stringMatching(/\.safetensors$/),
        message: expect.stringMatching(/O_DIRECT: EINVAL/)
      })
      expect(run({ ...options, direct: 'on' }, { launcher })).toEqual([refusal, refusal])
    }
  })

  it.each([...ways.map((options) => [options, 40] as const), [ways[0], 1] as const])(
    'that fails a read names it, and answers the next request (%o, read %i)',
    (options, count) => {
      const lines = run(options, { launcher: faultyIo!(`eio ${count}`) })
      const fault = lines.find(({ code }) => code !== undefined)
      expect(fault).toEqual({
        code: 'ERR_URING_READ',
        file: expect.stringMatching(/\.safetensors$/),
        tensor: expect.stringMatching(/^language_model\./),
        offset: expect.any(Number),
        needBytes: expect.any(Number),
        message: expect.stringMatching(
          /EIO at offset \d+, within \d+ bytes from offset \d+; it is of language/
        )
      })
      const rest = lines.filter((line) => line !== fault)
      for (const { ids } of rest) expect(ids).toEqual(ANSWER)
      expect(rest.length).toBeGreaterThan(0)
    }
  )
})

/** A folder with the shards of the demo model, by links. */
const linkedShards = () => {
  const dir = temporaryFolder()
  for (const name of readdirSync(modelDir).filter((one) => one.endsWith('.safetensors')))
    symlinkSync(path.join(modelDir, name), path.join(dir, name))
  return dir
}

describe('a model in a process with few descriptors', () => {
  it('is refused by name or runs', () => {
    const also = Array.from({ length: 8 }, linkedShards) // more files than are open at once to load the engine
    const outcomes = new Set<unknown>()
    for (let most = 44; most <= 120 && !outcomes.has('answered'); most += 6) {
      const launcher = ['sh', '-c', `ulimit -n ${most} && exec "$@"`, 'sh']
      if (!nodeRuns(launcher)) continue
      for (const line of run({ trunk: 'stream', cacheSlots: 4, also }, { launcher })) {
        // too few to load an addon, which node-gyp-build takes for an addon that is not there
        if (line.code === 'ERR_NATIVE_LOAD') continue
        if (line.code === undefined) expect(line.ids).toEqual(ANSWER)
        else expect(line.message).toMatch(/EMFILE|Too many open files/)
        outcomes.add(line.code === undefined ? 'answered' : line.code)
      }
    }
    expect(outcomes).toContain('ERR_URING_RESOURCES')
    expect(outcomes).toContain('answered')
  }, 120_000)
})
