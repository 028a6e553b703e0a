import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'

const packageRoot = fileURLToPath(new URL('..', import.meta.url))
const scratch = mkdtempSync(path.join(tmpdir(), 'k3-task-pool-'))
afterAll(() => rmSync(scratch, { recursive: true }))

const compile = (name: string, flags: readonly string[]) => {
  const program = path.join(scratch, name)
  const args = [
    '-std=c++17',
    '-O1',
    '-I../native-kit/include',
    'test/stress.cc',
    'native/pool.cc',
    '-pthread'
  ]
  const status = spawnSync('g++', [...args, ...flags, '-o', program], { cwd: packageRoot }).status
  return status === 0 ? program : undefined
}

// Nested runs and several calling threads are out of a JavaScript test's reach.
describe('the pool without Node', () => {
  it.for([
    ['plain', []],
    ['ThreadSanitizer', ['-fsanitize=thread']]
  ] as const)('keeps its promises under stress (%s)', { timeout: 90_000 }, ([name, flags], { skip }) => {
    const program = compile(name, flags)
    if (!program) return skip(`no g++ here that builds it (${name})`)
    const { status, stdout, stderr } = spawnSync(program, { encoding: 'utf8', timeout: 60_000 })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'ok\n', stderr: '' })
  })
})
