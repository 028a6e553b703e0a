import { describe, expect, test } from 'vitest'
import { EXIT, exitCodeOf } from '../src/exit-codes.js'
import { k3 } from './k3.js'

const coded = (code: string, cause?: unknown): Error => Object.assign(new Error(code, { cause }), { code })

describe('exitCodeOf', () => {
  test.each([
    ['ERR_USAGE', EXIT.usage],
    ['ERR_K3_CACHE_SLOTS', EXIT.usage],
    ['ERR_K3_TOKEN_ID', EXIT.usage],
    ['ERR_K3_CONTEXT_FULL', EXIT.usage],
    ['ERR_ISA_UNSUPPORTED', EXIT.usage],
    ['ERR_SYNTH_FIELD', EXIT.usage],
    ['ERR_XTML_ROLE', EXIT.usage],
    ['ERR_K3_CONFIG_MISSING', EXIT.checkpoint],
    ['ERR_K3_TENSORS', EXIT.checkpoint],
    ['ERR_K3_EXPERT_SCALE', EXIT.checkpoint],
    ['ERR_SAFETENSORS_OVERLAP', EXIT.checkpoint],
    ['ERR_TOKENIZER_FILE', EXIT.checkpoint],
    ['ERR_TOKENIZER_ID', EXIT.usage],
    ['ERR_URING_OPEN', EXIT.checkpoint],
    ['ERR_K3_MEMORY', EXIT.resources],
    ['ERR_URING_MEMORY', EXIT.resources],
    ['ERR_SYNTH_SPACE', EXIT.resources],
    ['ERR_URING_RESOURCES', EXIT.resources],
    ['ENOSPC', EXIT.resources],
    ['EMFILE', EXIT.resources],
    ['ERR_SAFETENSORS_READ_EOF', EXIT.read],
    ['ERR_URING_READ', EXIT.read],
    ['ERR_URING_EOF', EXIT.read],
    ['ERR_URING_CHANGED', EXIT.read],
    ['ERR_K3_SHARD_CHANGED', EXIT.read],
    ['ERR_K3_SHARD_COPY', EXIT.checkpoint],
    ['ERR_URING_DIRECT', EXIT.usage],
    ['ERR_URING_BACKEND', EXIT.usage],
    ['ERR_K3_LOGITS_NONFINITE', EXIT.failure],
    ['ERR_SOMETHING_ELSE', EXIT.failure]
  ])('gives %s the code %i', (code, exit) => {
    expect(exitCodeOf(coded(code))).toBe(exit)
  })

  test.each([
    'ERR_SAFETENSORS_IO',
    'ERR_K3_CONFIG_FILE',
    'ERR_TOKENIZER_FILE',
    'ERR_USAGE',
    'ERR_OUTPUT_WRITE'
  ])('does not blame a file for what the system lacks (%s)', (code) => {
    for (const lacking of ['EMFILE', 'ENFILE', 'ENOMEM'])
      expect(exitCodeOf(coded(code, coded(lacking)))).toBe(EXIT.resources)
  })

  test('lets the outermost error say what its cause was about', () => {
    expect(exitCodeOf(coded('ERR_K3_CONFIG_JSON', coded('ERR_USAGE')))).toBe(EXIT.checkpoint)
    expect(exitCodeOf(coded('ERR_USAGE', coded('ERR_K3_CONFIG_JSON')))).toBe(EXIT.usage)
  })

  test('takes a disk that fails for what it is', () => {
    expect(exitCodeOf(coded('ERR_SAFETENSORS_IO', coded('EIO')))).toBe(EXIT.read)
    expect(exitCodeOf(coded('ERR_SAFETENSORS_IO', coded('ENOENT')))).toBe(EXIT.checkpoint)
    expect(exitCodeOf(coded('ERR_K3_SHARD_CHANGED', coded('ERR_URING_OPEN')))).toBe(EXIT.read)
    expect(exitCodeOf(coded('ERR_CHAT_FILE', coded('ERR_K3_SESSION_READ')))).toBe(EXIT.usage)
  })

  test('looks at the cause of an error that has no code of its own', () => {
    expect(exitCodeOf(coded('ERR_SYNTH_WRITE', coded('ENOSPC')))).toBe(EXIT.resources)
    expect(exitCodeOf(coded('ERR_SYNTH_WRITE', coded('EACCES')))).toBe(EXIT.failure)
    expect(exitCodeOf(new Error('plain', { cause: coded('EIO') }))).toBe(EXIT.read)
    expect(exitCodeOf(coded('ERR_SYNTH_WRITE', coded('EIO')))).toBe(EXIT.failure)
    expect(exitCodeOf('a string')).toBe(EXIT.failure)
  })
})

describe('k3', () => {
  const commands = ['generate', 'tokens', 'render', 'parse', 'inspect', 'synth', 'self-test']

  test('lists commands and exit codes with --help', async () => {
    const { code, stdout, stderr } = await k3(['--help'])
    expect([code, stderr]).toEqual([0, ''])
    for (const command of commands) expect(stdout).toContain(`  ${command} [options]`)
    for (const value of Object.values(EXIT)) expect(stdout).toMatch(new RegExp(`^ {2}${value} `, 'm'))
  })

  test.each(commands)('explains %s with an example and the exit codes', async (command) => {
    const { code, stdout } = await k3([command, '--help'])
    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`Examples?:\n.*k3 ${command}`))
    expect(stdout).toContain('Exit codes:')
  })

  test.each(commands)('explains %s with help too', async (command) => {
    expect(await k3(['help', command])).toEqual(await k3([command, '--help']))
    expect(await k3(['help'])).toEqual(await k3(['--help']))
  })

  test('names a command that help does not know', async () => {
    expect((await k3(['help', 'dance'])).stderr).toMatch(/^k3: unknown command 'dance' \[ERR_USAGE\]\n/)
  })

  test.each(['0x10', '0b1', '', ' ', '1 ', '1_000', 'Infinity', '1e999', '.', 'e3'])(
    "refuses '%s' as a decimal number",
    async (text) => {
      const { code, stderr } = await k3(['generate', 'hi', '--temperature', text])
      expect([code, stderr]).toEqual([2, expect.stringContaining('Expected a decimal number')])
    }
  )

  test.each(['1e-3', '.5', '2.', '+1', '1E0'])('takes %s as a decimal number', async (text) => {
    const flags = ['--temperature', text, '--seed', '1', '--max-tokens', '1', '--quiet', '--threads', '1']
    expect((await k3(['generate', 'hi', ...flags])).code).toBe(0)
  })

  test('prints its version', async () => {
    expect(await k3(['--version'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+/)
    })
  })

  test.each([
    ['no command', []],
    ['an unknown command', ['dance']],
    ['help on an unknown command', ['help', 'dance']],
    ['help on an unknown command of bench', ['bench', 'help', 'dance']],
    ['help on two commands', ['help', 'synth', 'tokens']],
    ['an unknown flag', ['tokens', '--dance']],
    ['a flag without its value', ['generate', '--max-tokens']],
    ['a number that is none', ['generate', 'hi', '--max-tokens', '0x10']],
    ['a number below its bound', ['generate', 'hi', '--max-tokens', '0']],
    ['an instruction set that does not exist', ['generate', 'hi', '--isa', 'mmx']],
    ['too many threads', ['generate', 'hi', '--threads', '5000']],
    ['a temperature that is no number', ['generate', 'hi', '--temperature', 'warm']],
    ['a memory size in other digits', ['chat', '--cache-gb', '0x10']],
    ['a seed beyond 64 bits', ['generate', 'hi', '--seed', '18446744073709551616']],
    ['ids that are none', ['generate', '--ids', '1,,2']]
  ])('refuses %s', async (_, args) => {
    const { code, stdout, stderr } = await k3(args)
    expect([code, stdout]).toEqual([2, ''])
    // once, and the same for what the parser of the command line refuses and for what a command does
    expect(stderr.match(/^k3: .+ \[ERR_\w+\]$/gm)).toEqual([
      expect.stringMatching(/\[ERR_(USAGE|K3_OPTION|TASK_POOL_THREADS)\]$/)
    ])
  })

  test.each([
    [['tokens', '--dance'], "unknown option '--dance'"],
    [['tokens', '--jsn'], "unknown option '--jsn' (Did you mean --json?)"],
    [['dance'], "unknown command 'dance'"],
    [['trace', 'replay'], "missing required argument 'file'"],
    [['generate', '--max-tokens'], "option '--max-tokens <n>' argument missing"],
    [['synth'], "required option '--preset <name>' not specified"],
    [[], 'a command is missing'],
    [['bench'], 'a command is missing']
  ])('prints what is wrong with %j as any other error', async (args, message) => {
    const { code, stderr } = await k3(args)
    expect([code, stderr.split('\n').filter((line) => line.startsWith('k3: '))]).toEqual([
      2,
      [`k3: ${message} [ERR_USAGE]`]
    ])
  })
})
