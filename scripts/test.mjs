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
const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(
  readFileSync(report, 'utf8')
)
rmSync(scratch, { recursive: true })
// a file that could not be loaded has failed without a test of its own
const brokenFiles = testResults.filter(
  (file) => file.status === 'failed' && file.assertionResults.every(({ status }) => status !== 'failed')
)
const failed = numFailedTests + brokenFiles.length
console.log(`${numPassedTests} passed, ${failed} failed, ${numPendingTests + numTodoTests} skipped`)
process.exit(status)
