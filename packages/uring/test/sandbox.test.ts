import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { buildSandbox } from '../../native-kit/test-kit/sandbox.js'
import { backendInfo } from '../src/index.js'
import { builtEntry, patternFile, runNode, scratchFolder } from './scratch.js'

const folder = scratchFolder()
const { file, content } = patternFile(folder, 'file', 3 * 2 ** 20 + 5)
const sandbox = buildSandbox(folder)

const whyNot = () => {
  if (sandbox === null) return 'no C compiler here, or no seccomp for this user'
  if (backendInfo().backend !== 'io_uring') return `no io_uring here: ${backendInfo().ioUringRefusal}`
  return undefined
}
const reason = whyNot()
if (reason !== undefined) it(`the sandbox tests need more: ${reason}`, ({ skip }) => skip(reason))

const program = (options: object) => `
  import { readFileSync } from 'node:fs'
  import { allocRegion, openReader } from ${JSON.stringify(builtEntry)}
  try {
    const reader = openReader([${JSON.stringify(file)}], ${JSON.stringify(options)})
    const region = allocRegion(4 * 2 ** 20)
    await reader.submit([{ file: 0, offset: 5, length: ${content.length - 5}, region, at: 0 }]).done
    const same = readFileSync(${JSON.stringify(file)}).subarray(5).equals(region.view(5, ${content.length - 5}))
    const { backend, ioUringRefusal, registeredBytes, registrationRefusal } = reader.info
    console.log(JSON.stringify({ same, backend, ioUringRefusal, registeredBytes, registrationRefusal }))
    await reader.close()
  } catch ({ code, message }) {
    console.log(JSON.stringify({ code, message }))
  }`

const report = (launcher: string[], options: object = {}) => {
  const { status, stdout, stderr } = runNode(program(options), sandbox!(...launcher))
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return JSON.parse(stdout)
}

// Node 24 enters a ring of its own and ends the process when that is refused.
const nodeDies = 'this Node does not run in such a sandbox at all'
const nodeRuns = (launcher: string[]) => runNode('', sandbox!(...launcher)).status === 0

describe.skipIf(reason !== undefined)(
  'a process that may not use io_uring (needs seccomp and a compiler)',
  () => {
    it.for([
      ['setup', 1, 'io_uring_setup: EPERM, a sandbox (seccomp) forbids it'],
      ['setup', 38, 'io_uring_setup: ENOSYS, this kernel has no io_uring, or a sandbox hides it'],
      ['setup', 12, /^io_uring_setup: ENOMEM, .*RLIMIT_MEMLOCK/],
      ['enter', 1, 'io_uring_enter: EPERM']
    ] as const)('falls back to threads and says why (%s, error %i)', ([call, error, refusal], { skip }) => {
      const launcher = ['seccomp', call, String(error)]
      if (!nodeRuns(launcher)) skip(nodeDies)
      expect(report(launcher)).toEqual({
        same: true,
        backend: 'pread',
        ioUringRefusal: typeof refusal === 'string' ? refusal : expect.stringMatching(refusal),
        registeredBytes: 0,
        registrationRefusal: null
      })
    })

    it.for(['setup', 'enter'])('throws when io_uring was asked for by name (%s)', (call, { skip }) => {
      const launcher = ['seccomp', call, '1']
      if (!nodeRuns(launcher)) skip(nodeDies)
      expect(report(launcher, { backend: 'io_uring' })).toEqual({
        code: 'ERR_URING_BACKEND',
        message: expect.stringMatching(/EPERM/)
      })
    })

    it('reads through plain memory when buffers cannot be registered, and says why', () => {
      expect(report(['seccomp', 'register', '22'])).toEqual({
        same: true,
        backend: 'io_uring',
        ioUringRefusal: null,
        registeredBytes: 0,
        registrationRefusal: 'io_uring_register: EINVAL, this kernel is older than Linux 5.19'
      })
    })
  }
)

describe.skipIf(reason !== undefined)(
  'a process with a small limit on locked memory (needs seccomp and a compiler)',
  () => {
    it('reads through plain memory and says why', () => {
      expect(report(['memlock', '65536'])).toEqual({
        same: true,
        backend: 'io_uring',
        ioUringRefusal: null,
        registeredBytes: 0,
        registrationRefusal: expect.stringMatching(/^io_uring_register: ENOMEM, .*RLIMIT_MEMLOCK/)
      })
    })

    it('registers buffers as long as they stay below it', ({ skip }) => {
      const enough = String(6 * 2 ** 20)
      if (spawnSync('env', sandbox!('memlock', enough, 'true')).status !== 0)
        skip('the hard limit here is lower')
      expect(report(['memlock', enough])).toMatchObject({ same: true, registeredBytes: 4 * 2 ** 20 })
    })
  }
)
