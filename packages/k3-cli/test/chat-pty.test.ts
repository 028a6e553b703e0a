import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const server = `k3-chat-${process.pid}`
const hasTmux = spawnSync('tmux', ['-V']).status === 0
if (!hasTmux) process.stderr.write('tmux is missing: k3 chat is not tested in a pseudo-terminal\n')

const tmux = (...args: string[]): string => {
  const { status, stdout, stderr } = spawnSync('tmux', ['-L', server, '-f', '/dev/null', ...args], {
    encoding: 'utf8'
  })
  if (status !== 0) throw new Error(`tmux ${args[0]}: ${stderr}`)
  return stdout
}

/** Starts the built program in a window of its own; the window stays when it has ended. */
const open = (name: string, flags: string): void => {
  const command = `"${process.execPath}" "${main}" chat --threads 1 ${flags}; echo "code $?"; sleep 60`
  tmux('new-session', '-d', '-s', name, '-x', '80', '-y', '40', command)
}
const type = (name: string, ...keys: string[]) => tmux('send-keys', '-t', name, ...keys)
const seen = (name: string) => tmux('capture-pane', '-p', '-S', '-200', '-t', name).trimEnd()
const sees = (name: string, text: string | RegExp) =>
  expect.poll(() => seen(name), { timeout: 30_000, interval: 100 }).toMatch(text)

afterAll(() => {
  if (hasTmux) spawnSync('tmux', ['-L', server, 'kill-server'])
})

describe.skipIf(!hasTmux)('k3 chat in a pseudo-terminal (needs tmux)', { timeout: 90_000 }, () => {
  test('streams, takes pastes and history, follows a resize', async () => {
    open('talk', '--temperature 0')
    await sees('talk', /\n>$/)
    type('talk', 'Hello', 'Enter')
    await sees('talk', /> Hello\nThe user asks about a greeting\. *\nHello! How can I help you\?\n>$/)
    tmux('set-buffer', 'What is\n\tKDA?\n')
    tmux('paste-buffer', '-p', '-t', 'talk')
    await sees('talk', /> What is\n\.\.\. +KDA\?\n\.\.\.$/)
    type('talk', 'Enter')
    await sees('talk', /KDA is Kimi Delta Attention[\s\S]*\n>$/)
    tmux('resize-window', '-t', 'talk', '-x', '30', '-y', '40')
    type('talk', 'a line that is longer than the window is wide now')
    await sees('talk', /\n> a line that is longer than t\nhe window is wide now$/)
    type('talk', 'C-c')
    await sees('talk', /\^C\n>$/)
    // a pasted block is as many lines of history as it has
    type('talk', 'Up', 'Up', 'Up')
    await sees('talk', /\n> Hello$/)
    type('talk', 'C-c')
    type('talk', 'C-d')
    await sees('talk', /2 answers[\s\S]*code 0$/)
  })

  test('stops an answer at Ctrl-C, keeps the session, and quits at the second one', async () => {
    open('stop', '--temperature 5 --top-p 1 --seed 1 --think off --max-tokens 100000')
    await sees('stop', /\n>$/)
    type('stop', 'Hello', 'Enter')
    await expect.poll(() => seen('stop').length, { timeout: 30_000 }).toBeGreaterThan(600)
    type('stop', 'C-c')
    await sees('stop', /\nstopped\n>$/)
    type('stop', 'C-c')
    await sees('stop', /code 130$/)
  })
})
