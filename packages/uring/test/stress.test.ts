import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { compile } from '../../native-kit/test-kit/compile.js'
import { patternFile, scratchFolder } from './scratch.js'

const packageRoot = fileURLToPath(new URL('..', import.meta.url))
const folder = scratchFolder()
const { file } = patternFile(folder, 'file', 1_000_123)
const parts = ['batch', 'block_queue', 'buffer_table', 'pread_backend', 'region', 'ring', 'uring_backend']
const sources = ['test/stress.cc', ...parts.map((part) => `native/${part}.cc`)]

// Several threads that submit, and backends that end with work waiting, are out of a JavaScript test's reach.
describe('the backends without Node', () => {
  it.for([
    ['AddressSanitizer', ['-fsanitize=address']],
    ['ThreadSanitizer', ['-fsanitize=thread']]
  ] as const)('keep their promises under stress (%s)', { timeout: 120_000 }, ([name, flags], { skip }) => {
    const program = path.join(folder, name)
    if (!compile({ packageRoot, sources, flags, program }))
      return skip(`no g++ here that builds it (${name})`)
    const { status, stdout, stderr } = spawnSync(program, [file], { encoding: 'utf8', timeout: 60_000 })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'ok\n', stderr: '' })
  })
})
