import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { compile } from '../../native-kit/test-kit/compile.js'

const packageRoot = fileURLToPath(new URL('..', import.meta.url))
const scratch = mkdtempSync(path.join(tmpdir(), 'k3-task-pool-'))
afterAll(() => rmSync(scratch, { recursive: true }))

// Nested runs and several calling threads are out of a JavaScript test's reach.
describe('the pool without Node', () => {
  it.for([
    ['plain', []],
    ['ThreadSanitizer', ['-fsanitize=thread']]
  ] as const)('keeps its promises under stress (%s)', { timeout: 90_000 }, ([name, flags], { skip }) => {
    const program = path.join(scratch, name)
    if (!compile({ packageRoot, sources: ['test/stress.cc', 'native/pool.cc'], flags, program }))
      return skip(`no g++ here that builds it (${name})`)
    const { status, stdout, stderr } = spawnSync(program, { encoding: 'utf8', timeout: 60_000 })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'ok\n', stderr: '' })
  })
})
