// Every test of the repository, then one plain line a log reader understands: `N passed, N failed, N skipped`.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const run = (command, args) =>
  spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
    env: { ...process.env, TURBO_TELEMETRY_DISABLED: '1' }
  }).status ?? 1

if (run('turbo', ['run', 'build', '--output-logs=errors-only']) !== 0) process.exit(1)
const scratch = mkdtempSync(path.join(tmpdir(), 'k3-test-'))
const report = path.join(scratch, 'report.json')
const status = run('vitest', [
  'run',
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${report}`,
  ...process.argv.slice(2)
])
const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(
  readFileSync(report, 'utf8')
)
rmSync(scratch, { recursive: true })
console.log(`${numPassedTests} passed, ${numFailedTests} failed, ${numPendingTests + numTodoTests} skipped`)
process.exit(status)
