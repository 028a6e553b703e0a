import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const { resolve } = createRequire(import.meta.url)

/** Runs jscpd with the repository's limits (.jscpd.json) on folders below `cwd`. */
const findClones = (cwd: string, folders: readonly string[]): { status: number | null; report: string } => {
  const manifest = resolve('jscpd/package.json')
  const program = path.join(path.dirname(manifest), 'run-jscpd.js')
  const config = path.join(root, '.jscpd.json')
  const run = spawnSync(process.execPath, [program, '--config', config, ...folders], {
    cwd,
    encoding: 'utf8'
  })
  return { status: run.status, report: run.stdout + run.stderr }
}

test('at most 2 % of the source is a copy of other source', () => {
  const { status, report } = findClones(root, ['packages', 'tools', 'scripts'])
  expect(report).toMatch(/Found \d+ clones|No duplicates found/)
  expect(status, report).toBe(0)
}, 60_000)

test('a file that is copied is found', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'clones-'))
  try {
    for (const name of ['one', 'two']) {
      mkdirSync(path.join(folder, 'packages', name), { recursive: true })
      copyFileSync(path.join(root, 'scripts/tidy/cpp.ts'), path.join(folder, 'packages', name, 'cpp.ts'))
    }
    const { status, report } = findClones(folder, ['packages'])
    expect(report).toContain('too many duplicates')
    expect(status).toBe(1)
  } finally {
    rmSync(folder, { recursive: true })
  }
}, 60_000)
