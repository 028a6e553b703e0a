import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expectedFile } from '@k3/demo-model'
import { describe, expect, test } from 'vitest'
import { k3, scratchFolder, startK3 } from './k3.js'

interface Case {
  readonly name: string
  readonly messages: { readonly role: string; readonly content: string }[]
  readonly tools: unknown[] | null
  readonly parsed: { readonly reasoning_content: string; readonly content: string }
}
const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8')) as { cases: Case[] }
const named = (name: string): Case => cases.find((one) => one.name === name)!
const user = ({ messages }: Case): string => messages.at(-1)!.content

// one thread is fastest on a model this small, and the bits are those of any number
const chat = ['chat', '--threads', '1']
const greedy = [...chat, '--temperature', '0']
const hello = named('chat-01')
const kda = named('chat-04')

const say = (lines: readonly string[], flags: readonly string[] = []) =>
  k3([...greedy, ...flags], { stdin: lines.map((line) => `${line}\n`).join('') })

/** A file in a folder of its own. */
const file = (name: string, text?: string): string => {
  const at = path.join(scratchFolder(), name)
  if (text !== undefined) writeFileSync(at, text)
  return at
}

const toolsFile = () => file('tools.json', JSON.stringify(named('chat-18').tools))

describe('k3 chat through a pipe', () => {
  test.each(['chat-01', 'chat-03', 'chat-04', 'chat-12', 'chat-16'])(
    'answers %s of the expected outputs',
    async (name) => {
      const one = named(name)
      const { code, stdout, stderr } = await say([user(one)])
      expect([code, stdout]).toEqual([0, `${one.parsed.content}\n`])
      expect(stderr).toContain(`\n${one.parsed.reasoning_content}\n`)
      expect(stderr).toMatch(
        /\n1 answer, \d+ tokens read in [\d.]+ s, 0 reused, \d+ written, [\d.]+ s\/token, peak RSS [\d.]+ GB\n$/
      )
    }
  )

  test('takes the settings of a case from flags and from commands', async () => {
    const quick = named('chat-08')
    const low = named('chat-09')
    const withSystem = named('chat-11')
    const system = withSystem.messages[0]!.content
    expect((await say([user(quick)], ['--think', 'off'])).stdout).toBe(`${quick.parsed.content}\n`)
    expect((await say([user(withSystem)], ['--system', system])).stdout).toBe(
      `${withSystem.parsed.content}\n`
    )
    const lines = ['/think off', user(quick), '/reset', '/think low', user(low)]
    const commanded = await say([...lines, '/reset', '/think on', `/system ${system}`, user(withSystem)])
    expect(commanded.stdout).toBe(
      `${[quick, low, withSystem].map(({ parsed }) => parsed.content).join('\n')}\n`
    )
  })

  test('samples as the vendor recommends unless told otherwise, and reports the seed', async () => {
    const { stdout, stderr } = await k3(chat, { stdin: 'Hello\n' })
    // every token of this answer has more than 0.95 of the probability
    expect([stdout, stderr]).toEqual([`${hello.parsed.content}\n`, expect.stringMatching(/, seed \d+\n$/)])
    const warm = ['--temperature', '3', '--top-p', '1', '--max-tokens', '30', '--quiet', '--think', 'off']
    const drawn = async (seed: string) =>
      (await k3([...chat, ...warm, '--seed', seed], { stdin: 'Hello\n' })).stdout
    expect(await drawn('7')).toBe(await drawn('7'))
    expect(await drawn('7')).not.toBe(await drawn('8'))
  })

  test.each([
    ['--top-k', '1'],
    ['--min-p', '1']
  ])('leaves only the most probable token with %s %s', async (...flag) => {
    const { stdout } = await k3([...chat, '--temperature', '3', ...flag], { stdin: 'Hello\n' })
    expect(stdout).toBe(`${hello.parsed.content}\n`)
  })

  test.each(['--repetition-penalty', '--presence-penalty', '--frequency-penalty'])(
    'changes the answer with %s',
    async (flag) => {
      const warm = [
        '--temperature',
        '3',
        '--top-p',
        '1',
        '--seed',
        '7',
        '--max-tokens',
        '60',
        '--think',
        'off'
      ]
      const plain = await k3([...chat, ...warm], { stdin: 'Hello\n' })
      expect((await k3([...chat, ...warm, flag, '2'], { stdin: 'Hello\n' })).stdout).not.toBe(plain.stdout)
    }
  )

  test('remembers earlier turns and does not run them again', async () => {
    const { messages, parsed } = named('chat-15')
    const turns = messages.filter(({ role }) => role === 'user').map(({ content }) => content)
    const { stdout, stderr } = await say([...turns, '/stats'])
    expect(stdout.endsWith(`${parsed.content}\n`)).toBe(true)
    expect(stderr).toMatch(/\nlatest answer (\d\d) of \d{3} tokens read/)
    const fresh = await say(turns, ['--prefix-cache', '0'])
    expect(fresh.stdout).toBe(stdout)
    expect(fresh.stderr).toContain('this chat outgrows --prefix-cache')
    expect(fresh.stderr).toContain(' 0 reused')
  })

  test('tells with /stats what was read of the trunk, and what lookahead was good for', async () => {
    const { stderr } = await say(['Hello', '/stats'], ['--trunk', 'stream', '--lookahead', '2'])
    expect(stderr).toMatch(/\ntrunk {9}stream, \d+\.\d{3} GB read\n/)
    expect(stderr).toMatch(/\nlookahead {5}\d+ \d+ % right by rank, \d+ reads used, \d+ wasted \(/)
    expect((await say(['Hello', '/stats'])).stderr).not.toContain('lookahead')
  })

  test.each([
    ['greedy', greedy],
    ['sampled with one seed', [...chat, '--temperature', '1.2', '--top-p', '0.95', '--seed', '3']]
  ])('says the same with --spec in fewer passes, %s', async (_, flags) => {
    // the second answer repeats the first one, which its prompt holds
    const stdin = `Hello\n${user(kda)}\n${user(kda)}\n/stats\n`
    const plain = await k3(flags, { stdin })
    expect(plain.stderr).not.toContain('speculation')
    for (const length of ['6', 'auto']) {
      const fast = await k3([...flags, '--spec', length], { stdin })
      expect([fast.code, fast.stdout]).toEqual([0, plain.stdout])
      const [, accepted, drafted] = /\nspeculation {3}(\d+) of (\d+) drafts accepted/.exec(fast.stderr)!
      expect(Number(accepted)).toBeGreaterThan(5)
      expect(Number(drafted)).toBeGreaterThanOrEqual(Number(accepted))
      expect(fast.stderr).toContain(`passes, --spec ${length}\n`)
    }
  })

  test('runs one line after the other, with CR LF, blank lines, a byte order mark and no last line end', async () => {
    const { stdout } = await k3(greedy, { stdin: `\ufeffHello\r\n\r\n  \n${user(kda)}` })
    expect(stdout).toBe(`${hello.parsed.content}\n${kda.parsed.content}\n`)
  })

  test('goes on with a line after a backslash, and sends a slash for two', async () => {
    const saved = file('chat.json')
    await say(['one\\', 'two', '//etc\\', '/reset', `/save ${saved}`, '/quit', 'never'])
    const { messages } = JSON.parse(readFileSync(saved, 'utf8')) as Case
    expect(messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([
      'one\ntwo',
      '/etc\n/reset'
    ])
    const open = await say(['Hello\\'])
    expect(open.stdout).toBe(`${hello.parsed.content}\n`)
  })

  test('says nothing beside the answers with --quiet, and hides reasoning with --no-reasoning', async () => {
    expect(await say(['Hello'], ['--quiet'])).toMatchObject({ stderr: '' })
    expect((await say(['Hello'], ['--no-reasoning'])).stderr).not.toContain(hello.parsed.reasoning_content)
    const hidden = await say(['/think hide', 'Hello', '/think show'])
    expect(hidden.stderr).toMatch(/hidden\nThe user asks about a greeting\.\nreasoning is shown\n/)
  })

  test('counts what is kept against the context it was given', async () => {
    const { stderr } = await say(['Hello', '/stats'], ['--context', '2048'])
    expect(stderr).toMatch(/\nkept states {3}\d+, [\d.]+ of \d+ MB, longest \d+ of 2048 tokens\n/)
  })

  test('says when an answer was cut off', async () => {
    const { stdout, stderr } = await say(['Hello'], ['--think', 'off', '--max-tokens', '3'])
    expect(hello.parsed.content.startsWith(stdout.trimEnd())).toBe(true)
    expect(stderr).toContain('cut off at --max-tokens')
  })

  test('lists every command with /help', async () => {
    const { stderr } = await say(['/help'])
    for (const name of ['system', 'tools', 'think', 'save', 'load', 'reset', 'stats', 'help', 'quit']) {
      expect(stderr).toContain(`/${name} `)
    }
  })

  test('stops at a refused line with the code of a usage error', async () => {
    const refused: [string | Buffer, string][] = [
      ['/nope', 'unknown command /nope'],
      ['/ save', 'unknown command /;'],
      ['/reset now', '/reset takes no argument'],
      ['/save', '/save needs an argument: /save FILE'],
      ['/think hard', '/think takes on, off, low, high, max, show or hide, not hard'],
      ['/load /nowhere/at/all', 'ERR_CHAT_FILE'],
      ['/tools /nowhere/at/all', 'cannot be read'],
      ['/tools -', '/tools needs the name of a file'],
      [Buffer.from([0x41, 0xff]), 'line 1 is not UTF-8 text: byte 1 (0xff)']
    ]
    for (const [line, message] of refused) {
      const stdin = Buffer.concat([Buffer.from(line), Buffer.from('\nHello\n')])
      expect(await k3(greedy, { stdin })).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining(message)
      })
    }
  })

  test.each([
    ['a seed that nothing is drawn from', ['--temperature', '0', '--seed', '1']],
    ['a top-k that nothing is drawn from', ['--temperature', '0', '--top-k', '1']],
    ['a way to think that there is none of', ['--think', 'hard']],
    ['tools from the conversation', ['--tools', '-']],
    ['a prefix cache of less than nothing', ['--prefix-cache', '-1']],
    ['a model without a name', ['--model', '']],
    ['an argument', ['Hello']]
  ])('refuses %s', async (_, flags) => {
    expect((await k3([...chat, ...flags])).code).toBe(2)
  })

  test('refuses a model without tokenizer', async () => {
    const dir = scratchFolder()
    await k3(['synth', '--preset', 'tiny', '--seed', '5', '--out', dir, '--quiet'])
    const { code, stderr } = await k3([...chat, '--model', dir], { stdin: 'Hi\n' })
    expect([code, stderr]).toEqual([2, expect.stringContaining('needs the tokenizer files')])
  })
})

describe('k3 chat with tools', () => {
  test('shows a call, takes its result, and answers', async () => {
    const question = user(named('chat-18'))
    const { code, stdout, stderr } = await say([question, 'sunny, 21 °C'], ['--tools', toolsFile()])
    expect([code, stdout]).toEqual([0, `${named('chat-19').parsed.content}\n`])
    expect(stderr).toContain('\ncall of get_weather {"city": "Paris"}\n')
    const commanded = await say([`/tools ${toolsFile()}`, question, 'sunny, 21 °C'])
    expect(commanded.stdout).toBe(stdout)
  })

  test('fails when the input ends before the result', async () => {
    const { code, stdout, stderr } = await say([user(named('chat-18'))], ['--tools', toolsFile()])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('the result of get_weather is expected')
  })

  test('drops the tools without a file, and refuses what are none', async () => {
    const berlin = named('chat-25')
    const without = await say(['/tools', user(berlin)], ['--tools', toolsFile()])
    expect(without.stdout).toBe(`${berlin.parsed.content}\n`)
    for (const text of ['{}', 'no', '[1]']) {
      expect((await say([`/tools ${file('tools.json', text)}`])).code).toBe(2)
    }
  })
})

describe('a saved chat', () => {
  test('goes on as if it had never ended, without running its turns again', async () => {
    const saved = file('chat.json')
    const whole = await say(['/system Be brief.', 'Hello', user(kda), 'What is MLA?'])
    const first = await say(['/system Be brief.', 'Hello', user(kda), `/save ${saved}`])
    const second = await say(['What is MLA?', '/stats'], ['--load', saved])
    expect(first.stdout + second.stdout).toBe(whole.stdout)
    expect(second.stderr).toContain('4 messages of ')
    expect(second.stderr).toMatch(/latest answer (\d\d) of \d{3} tokens read/)
    const loaded = await say(['Who are you?', `/load ${saved}`, 'What is MLA?'])
    expect(loaded.stdout.endsWith(second.stdout)).toBe(true)
    expect(statSync(saved).mode & 0o777).toBe(0o600)
  })

  test('goes on without its state, and says so', async () => {
    const saved = file('chat.json')
    await say(['Hello', `/save ${saved}`])
    const other = file('other.json')
    await say([user(kda), `/save ${other}`])
    writeFileSync(`${saved}.session`, readFileSync(`${other}.session`))
    const { code, stdout, stderr } = await say([user(kda)], ['--load', saved])
    expect([code, stdout]).toEqual([0, `${kda.parsed.content}\n`])
    expect(stderr).toContain('the turns will run again')
    writeFileSync(saved, readFileSync(saved, 'utf8').replace(/"session_tokens": \d+/, '"session_tokens": 0'))
    expect((await say([user(kda)], ['--load', saved])).stdout).toBe(stdout)
  })

  test('is refused with a damaged state, and what was there stays', async () => {
    const saved = file('chat.json')
    await say(['Hello', `/save ${saved}`])
    const bytes = readFileSync(`${saved}.session`)
    bytes[bytes.length - 1]! ^= 1
    writeFileSync(`${saved}.session`, bytes)
    const { code, stderr } = await say([`/load ${saved}`])
    expect([code, stderr]).toEqual([3, expect.stringContaining('ERR_K3_SESSION_CHECKSUM')])
  })

  test('is written over, but nothing else is', async () => {
    const saved = file('chat.json')
    await say(['Hello', `/save ${saved}`, '/reset', `/save ${saved}`])
    expect(existsSync(`${saved}.session`)).toBe(false)
    const foreign = [file('notes.txt', 'milk'), file('data.json', '{}'), file('list.json', '[]')]
    for (const name of foreign) {
      const before = readFileSync(name, 'utf8')
      const { code, stderr } = await say([`/save ${name}`])
      expect([code, stderr]).toEqual([2, expect.stringContaining('is no saved chat')])
      expect(readFileSync(name, 'utf8')).toBe(before)
    }
    const lone = file('lone.json.session', 'milk').replace(/\.session$/, '')
    expect((await say(['Hello', `/save ${lone}`])).stderr).toContain('choose another name')
    const nowhere = await say(['Hello', '/reset', '/save /nowhere/at/all'])
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('ERR_CHAT_WRITE')])
  })

  test.each([
    ['another version', { version: 2 }],
    ['an unknown field', { colour: 'blue' }],
    ['a system turn that is no text', { system: 1 }],
    ['tools that are no list', { tools: {} }],
    ['another way to think', { thinking: 'hard' }],
    ['messages that are no list', { messages: 'Hello' }],
    ['a number of tokens that is none', { session_tokens: -1 }],
    ['a message of nobody', { messages: [{ role: 'nobody', content: '' }] }]
  ])('is refused with %s', async (_, change) => {
    const chatFile = { format: 'k3-chat', version: 1, system: null, tools: [], thinking: 'max' }
    const text = JSON.stringify({ ...chatFile, messages: [], session_tokens: 0, ...change })
    const { code, stderr } = await say([`/load ${file('chat.json', text)}`])
    expect([code, stderr]).toEqual([2, expect.stringMatching(/\[ERR_(CHAT_FILE|XTML_\w+)\]\n$/)])
  })
})

describe('the k3 chat process', { timeout: 60_000 }, () => {
  const start = (flags: readonly string[]) => {
    const child = startK3([...chat, ...flags])
    const texts = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].on('data', (chunk: Buffer) => {
        texts[name] += chunk.toString()
      })
    }
    const end = new Promise<number | null>((resolve) => child.on('close', resolve))
    return { child, texts, end }
  }

  test('answers a turn before the next one is written', async () => {
    const { child, texts, end } = start(['--temperature', '0'])
    child.stdin.write('Hello\n')
    await expect.poll(() => texts.stdout, { timeout: 30_000 }).toBe(`${hello.parsed.content}\n`)
    child.stdin.end('/quit\n')
    expect(await end).toBe(0)
  })

  test.skipIf(process.platform === 'win32')(
    'keeps the text at Ctrl-C and ends (needs POSIX signals)',
    async () => {
      const { child, texts, end } = start([
        ...['--temperature', '5', '--top-p', '1', '--seed', '1', '--think', 'off'],
        ...['--max-tokens', '100000']
      ])
      child.stdin.write('Hello\n')
      await expect.poll(() => texts.stdout.length, { timeout: 30_000 }).toBeGreaterThan(0)
      child.kill('SIGINT')
      expect(await end).toBe(130)
      expect(texts.stdout.endsWith('\n')).toBe(true)
      expect(texts.stderr).toContain('\nstopped\n')
    }
  )
})
