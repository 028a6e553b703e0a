import { readFileSync, writeFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import { runCommandLine } from '../src/run-command-line.js'
import { Sink, scratchFolder } from './k3.js'

const chat = ['chat', '--threads', '1', '--temperature', '0']
// what a busy machine shows before the answer begins
const PREFILLING = /reading [\d.]+ of \d+ tokens/
// text of all kinds, without an end that comes soon
const endless = [
  'chat',
  '--threads',
  '1',
  '--temperature',
  '5',
  '--top-p',
  '1',
  '--seed',
  '1',
  '--think',
  'off'
]
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const UP = '\u001b[A'
const ESCAPES = new RegExp(`${'\u001b'}\\[[?\\d;]*[a-zA-Z]`, 'g')

/** A terminal in front of `k3 …args`; everything the person sees is on one screen. */
const sit = (args: readonly string[], settings: { noColor?: boolean; isDumb?: boolean } = {}) => {
  const { noColor = false, isDumb = false } = settings
  const screen = new Sink(true)
  const keys = Object.assign(new PassThrough(), { isTTY: true })
  const terminal = { stdin: keys, stdout: screen, stderr: screen, noColor, isDumb, exitCode: 0 }
  const end = runCommandLine(args, terminal)
  const seen = () => screen.text.replace(ESCAPES, '').replaceAll('\r\n', '\n')
  const sees = (text: string | RegExp) => expect.poll(seen, { timeout: 30_000 }).toMatch(text)
  /** The prompt is the last thing on the screen. */
  const asked = () => sees(/\n(> )+$/)
  return { keys, screen, end, sees, asked, seen }
}

const interruptListeners = process.listenerCount('SIGINT')

afterEach(() => {
  // a chat that stays would answer the interrupts of the next one
  expect(process.listenerCount('SIGINT')).toBe(interruptListeners)
})

describe('k3 chat at a terminal', { timeout: 60_000 }, () => {
  test('greets, prompts, dims the reasoning, and ends at Ctrl-D', async () => {
    const { keys, screen, end, asked, seen } = sit(chat)
    await asked()
    keys.write('Hello\r')
    await expect.poll(seen, { timeout: 30_000 }).toContain('\nHello! How can I help you?\n')
    await asked()
    expect(screen.text).toContain('\u001b[2mThe')
    expect(seen()).toContain('/help lists the commands')
    expect(screen.text).toContain('\u001b[?2004h')
    keys.write(CTRL_D)
    expect(await end).toBe(0)
    expect(screen.text).toContain('\u001b[?2004l')
  })

  test('shows no colour with NO_COLOR, and marks no pastes on a dumb terminal', async () => {
    const { keys, screen, end, asked } = sit(chat, { noColor: true, isDumb: true })
    await asked()
    keys.write('Hello\r/quit\r')
    expect(await end).toBe(0)
    expect(screen.text).not.toContain('\u001b[2m')
    expect(screen.text).not.toContain('\u001b[?2004')
  })

  test('hides the reasoning, opens it, and goes on after a refused line', async () => {
    const { keys, end, asked, sees, seen } = sit([...chat, '--no-reasoning'])
    await asked()
    keys.write('/nope\r')
    await sees('k3: unknown command /nope')
    keys.write('Hello\r')
    await sees(/thought for [\d.]+ s; \/think show opens it/)
    await sees('How can I help')
    expect(seen()).not.toContain('The user asks')
    keys.write('/think show\r')
    await sees('The user asks about a greeting.\nreasoning is shown')
    keys.write('/quit\r')
    expect(await end).toBe(0)
  })

  test('takes lines after a backslash and pasted blocks as one turn', async () => {
    const file = `${scratchFolder()}/chat.json`
    const { keys, end, asked, sees } = sit([...chat, '--max-tokens', '1'])
    await asked()
    keys.write('one\\\r')
    await sees(/one\\\n(\.\.\. )+$/)
    keys.write('two\r')
    await sees('cut off')
    keys.write('\u001b[200~a\\\r\tb\r\u001b[201~')
    await sees(/b\n(\.\.\. )+$/)
    keys.write('\r')
    keys.write(`/save ${file}\r/quit\r`)
    expect(await end).toBe(0)
    const { messages } = JSON.parse(readFileSync(file, 'utf8')) as { messages: { content: string }[] }
    expect([messages[0]!.content, messages[2]!.content]).toEqual(['one\ntwo', 'a\\\n\tb'])
  })

  test('brings earlier lines back with the arrow keys', async () => {
    const { keys, end, asked, sees } = sit(chat)
    await asked()
    keys.write('/think low\r')
    await sees('thinking low')
    keys.write(`/think high\r${UP}${UP}`)
    await sees(/thinking high[\s\S]*> \/think low$/)
    keys.write('\r')
    await sees(/thinking high[\s\S]*thinking low/)
    keys.write('/quit\r')
    expect(await end).toBe(0)
  })

  test('keeps what is typed during an answer out of it, and takes it afterwards', async () => {
    const { keys, end, asked, sees, seen } = sit(chat)
    await asked()
    keys.write('Hello\r')
    keys.write('/think low\r/qu')
    await sees(/\nHello! How can I help you\?\n> \/think low\nthinking low\n(> )*> \/qu$/)
    keys.write('it\r')
    expect(await end).toBe(0)
    expect(seen()).toContain('answer')
  })
})

describe('Ctrl-C in k3 chat', { timeout: 60_000 }, () => {
  test('stops an answer and keeps the session; the next one at an empty prompt quits', async () => {
    const { keys, end, asked, sees, seen } = sit([...endless, '--max-tokens', '100000'])
    await asked()
    keys.write('Hello\r')
    await expect.poll(() => seen().split(PREFILLING).at(-1)!.length, { timeout: 30_000 }).toBeGreaterThan(500)
    keys.write(CTRL_C)
    await sees(/\nstopped\n(> )+$/)
    keys.write('/stats\r')
    await sees(/conversation {2}2 messages[\s\S]*, abort\n[\s\S]*(> )+$/)
    keys.write(CTRL_C)
    await sees('Ctrl-C once more quits')
    keys.write(CTRL_C)
    expect(await end).toBe(130)
  })

  test('drops a line, and a text of several lines, that is being typed', async () => {
    const { keys, end, asked, sees } = sit(chat)
    await asked()
    keys.write('some words')
    keys.write(CTRL_C)
    await sees(/\^C\n(> )+$/)
    keys.write('/system one\\\r')
    keys.write(CTRL_C)
    keys.write('/stats\r')
    await sees('conversation  0 messages')
    keys.write('/quit\r')
    expect(await end).toBe(0)
  })

  test('takes a turn back whose call gets no result', async () => {
    const tools = `${scratchFolder()}/tools.json`
    const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    const description = 'Get the current weather of a city.'
    const tool = { type: 'function', function: { name: 'get_weather', description, parameters: city } }
    writeFileSync(tools, JSON.stringify([tool]))
    const { keys, end, asked, sees } = sit([...chat, '--tools', tools])
    await asked()
    keys.write('What is the weather in Paris?\r')
    await sees('result of get_weather> ')
    keys.write(CTRL_C)
    await sees('no result; the turn is taken back')
    keys.write('What is the weather in Paris?\r')
    await sees(/taken back[\s\S]*result of get_weather> /)
    keys.write('sunny, 21 °C\r')
    await sees('It is sunny in Paris with 21 °C.')
    keys.write('/quit\r')
    expect(await end).toBe(0)
  })
})
