// `pnpm k3 …` in a checkout: build what changed, then hand the command line over. The build's own lines go to
// stderr, because stdout belongs to the answer.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const inRoot = {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  shell: process.platform === 'win32',
  env: { ...process.env, TURBO_TELEMETRY_DISABLED: '1' }
}
const build = spawnSync('turbo', ['run', 'build', '--output-logs=errors-only'], {
  ...inRoot,
  stdio: ['ignore', 2, 2]
})
if (build.status !== 0) process.exit(build.status ?? 1)
const main = fileURLToPath(new URL('../packages/k3-cli/dist/main.js', import.meta.url))
const { status, signal } = spawnSync(process.execPath, [main, ...process.argv.slice(2)], { stdio: 'inherit' })
if (signal) process.kill(process.pid, signal)
process.exit(status ?? 1)
