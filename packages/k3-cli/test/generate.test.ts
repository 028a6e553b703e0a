import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expectedFile, modelDir } from '@k3/demo-model'
import { supportedIsas } from '@k3/vector-ops'
import { describe, expect, test } from 'vitest'
import { k3, k3Object, scratchFolder } from './k3.js'

interface Case {
  readonly name: string
  readonly text?: string
  readonly messages?: { role: string; content: string }[]
  readonly prompt_ids: number[]
  readonly output_ids: number[]
  readonly output_text: string
  readonly parsed?: { reasoning_content: string; content: string }
}
const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8')) as { cases: Case[] }
const named = (name: string): Case => cases.find((one) => one.name === name)!
const raw = named('raw-01')
const stopped = named('raw-04')
const chat = named('chat-03')

// one thread is fastest on a model this small, and the bits are those of any number
const run = ['generate', '--threads', '1']
const DEMO_NOTE = 'k3: no --model given, this is the shipped demo model\n'
/** What comes next: where memory goes. */
const MEMORY_NOTE =
  /^k3: memory [\d.]+ GB of [\d.]+ GB \(.+\): trunk mapped, 192 expert slots, \d+ tokens of context, \d+ in flight\n/
const afterNotes = (stderr: string) => stderr.replace(DEMO_NOTE, '').replace(MEMORY_NOTE, '')

describe('k3 generate', () => {
  test('continues a text on stdout and says everything else on stderr', async () => {
    const { code, stdout, stderr } = await k3([...run, raw.text!, '--max-tokens', '48'])
    expect([code, stdout]).toEqual([0, `${raw.output_text}\n`])
    expect(stderr.startsWith(DEMO_NOTE)).toBe(true)
    expect(stderr.slice(DEMO_NOTE.length)).toMatch(MEMORY_NOTE)
    expect(afterNotes(stderr)).toMatch(
      /^6 \+ 48 tokens, [\d.]+ s\/token, first after [\d.]+ s, expert cache [\d.]+ % hits, [\d.]+ GB read, peak RSS [\d.]+ GB, length\n$/
    )
  })

  test('does not name the demo model when a model is given', async () => {
    const { stderr } = await k3([...run, 'Hi', '--max-tokens', '1', '--model', modelDir])
    expect(stderr).not.toContain('demo model')
  })

  test('prints one object with --json', async () => {
    const object = await k3Object([...run, stopped.text!, '--json'])
    expect(object).toEqual({
      ids: stopped.output_ids,
      text: expect.any(String),
      finish_reason: 'stop',
      prompt_tokens: stopped.prompt_ids.length,
      seed: null,
      speculation: null,
      expert_activations: 'exact',
      timings: {
        load_ms: expect.any(Number),
        first_token_ms: expect.any(Number),
        total_ms: expect.any(Number)
      },
      cache: {
        slots: expect.any(Number),
        hits: expect.any(Number),
        misses: expect.any(Number),
        hit_rate: expect.any(Number)
      },
      bytes_read: expect.any(Number),
      trunk_bytes_read: 0,
      drives: [{ folder: modelDir, bytes_read: expect.any(Number), gb_per_s: expect.any(Number) }],
      lookahead: { predicted: [], chosen: [], used_reads: 0, wasted_reads: 0, wasted_bytes: 0 },
      peak_rss_bytes: expect.any(Number),
      memory: expect.objectContaining({ cache_slots: 192, trunk: expect.objectContaining({ mode: 'mmap' }) }),
      backend: expect.any(String)
    })
    expect(stopped.output_text.startsWith(object.text as string)).toBe(true)
  })

  test('says nothing on stderr with --quiet', async () => {
    const quiet = await k3([...run, raw.text!, '--max-tokens', '3', '--quiet'])
    expect(quiet).toMatchObject({ code: 0, stderr: '' })
    expect(quiet.stdout).not.toBe('')
  })

  test('counts tokens up to --max-tokens', async () => {
    const { ids, finish_reason } = await k3Object([...run, raw.text!, '--max-tokens', '3', '--json'])
    expect([ids, finish_reason]).toEqual([raw.output_ids.slice(0, 3), 'length'])
  })

  test('takes the prompt from a file, from standard input or as ids', async () => {
    const file = path.join(scratchFolder(), 'prompt.txt')
    writeFileSync(file, `\ufeff${raw.text!}`)
    const short = [...run, '--max-tokens', '4', '--json']
    const ids = raw.output_ids.slice(0, 4)
    expect(await k3Object([...short, '--prompt-file', file])).toMatchObject({ ids, prompt_tokens: 6 })
    expect(await k3Object([...short, '--prompt-file', '-'], raw.text)).toMatchObject({
      ids,
      prompt_tokens: 6
    })
    expect(await k3Object([...short, '--ids', raw.prompt_ids.join(',')])).toMatchObject({ ids })
  })

  test('keeps line breaks of the prompt as they are', async () => {
    const tokens = async (text: string) => {
      const { prompt_tokens } = await k3Object(
        [...run, '--max-tokens', '1', '--json', '--prompt-file', '-'],
        text
      )
      return prompt_tokens
    }
    expect(await tokens('a\r\nb\n')).toBe(
      ((await k3Object(['tokens', '--json'], 'a\r\nb\n')).ids as object[]).length
    )
  })

  test('refuses a prompt that is not UTF-8, with the offset', async () => {
    const { code, stderr } = await k3([...run, '--prompt-file', '-'], { stdin: Buffer.from([0x48, 0xff]) })
    expect(code).toBe(2)
    expect(stderr).toContain('byte 1 ')
  })
})

describe('k3 generate --fast-experts', () => {
  const logitsOf = async (flags: string[]) => {
    const file = path.join(scratchFolder(), 'logits')
    const object = await k3Object([
      ...run,
      raw.text!,
      '--max-tokens',
      '1',
      '--json',
      '--dump-logits',
      file,
      ...flags
    ])
    // copied, because a small file's buffer is part of a larger one
    return { object, logits: new Float32Array(new Uint8Array(readFileSync(file)).buffer) }
  }

  test('approximates the logits, and says so everywhere', async () => {
    const exact = await logitsOf(['--quiet'])
    const fast = await logitsOf(['--quiet', '--fast-experts'])
    expect([exact.object.expert_activations, fast.object.expert_activations]).toEqual(['exact', 'int8'])
    const distance = Math.hypot(...exact.logits.map((logit, i) => logit - fast.logits[i]!))
    expect(distance).toBeGreaterThan(0)
    expect(distance / Math.hypot(...exact.logits)).toBeLessThan(0.05)
    const { stderr } = await k3([...run, raw.text!, '--max-tokens', '1', '--fast-experts'])
    expect(stderr).toContain(
      'k3: --fast-experts: inputs of routed experts in 8 bits; the logits are an approximation'
    )
    expect(stderr).toMatch(/, int8 experts, length\n$/)
  })

  test('is no flag of commands whose result is exact', async () => {
    const { code, stderr } = await k3(['self-test', '--fast-experts'])
    expect(code).not.toBe(0)
    expect(stderr).toContain('--fast-experts')
  })
})

describe('k3 generate --spec', () => {
  // the answer is in the prompt, so that drafts are right
  const ids = [...chat.prompt_ids, ...chat.output_ids, ...chat.prompt_ids].join(',')
  const repeated = [...run, '--ids', ids, '--max-tokens', '60', '--json', '--quiet']

  test.each([
    ['greedy', []],
    ['sampled with one seed', ['--temperature', '1.2', '--top-p', '0.95', '--seed', '7']]
  ])('takes fewer passes to the same tokens, %s', async (_, sampling) => {
    const plain = await k3Object([...repeated, ...sampling])
    expect(plain.speculation).toBeNull()
    for (const length of ['1', '8', '32', 'auto']) {
      const fast = await k3Object([...repeated, ...sampling, '--spec', length])
      expect([fast.ids, fast.text, fast.finish_reason]).toEqual([plain.ids, plain.text, plain.finish_reason])
      const { passes, drafted, accepted } = fast.speculation as Record<string, number>
      expect(accepted).toBeGreaterThan(10)
      expect(drafted).toBeGreaterThanOrEqual(accepted!)
      expect(drafted).toBeLessThanOrEqual(passes! * (length === 'auto' ? 8 : Number(length)))
    }
  })

  test('says on the last line what became of the drafts', async () => {
    const { stderr } = await k3([...run, '--ids', ids, '--max-tokens', '20', '--spec', '4'])
    expect(stderr).toMatch(/, \d+ of \d+ drafts accepted in \d+ pass(es)?, (stop|length)\n$/)
  })

  test.each(['0', '33', '-1', '1.5', 'on', ''])('refuses %j by name', async (length) => {
    for (const command of [run, ['chat', '--threads', '1']]) {
      const { code, stdout, stderr } = await k3([...command, '--spec', length], { stdin: 'Hello\n' })
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toContain('--spec <n>')
      expect(stderr).toContain('Expected auto or a whole number in 1 ... 32.')
    }
  })
})

describe('k3 generate --chat', () => {
  const question = chat.messages![0]!.content
  const { reasoning_content, content } = chat.parsed!

  test('answers with the response channel, reasoning beside it', async () => {
    const { code, stdout, stderr } = await k3([...run, '--chat', question])
    expect([code, stdout]).toEqual([0, `${content}\n`])
    expect(stdout).toContain('93 decoder layers')
    expect(afterNotes(stderr).startsWith(`${reasoning_content}\n`)).toBe(true)
  })

  test('dims reasoning on a terminal, not with NO_COLOR', async () => {
    const dimmed = await k3([...run, '--chat', question], { isTTY: true })
    expect(dimmed.stderr).toContain('\u001b[2m')
    expect(dimmed.stderr).toMatch(/\rloading … *\r.*prefilling [\d.]+ of 93 tokens/s)
    const plain = await k3([...run, '--chat', question], { isTTY: true, noColor: true })
    expect(plain.stderr).not.toContain('\u001b[')
    expect([plain.stdout, dimmed.stdout]).toEqual([`${content}\n`, `${content}\n`])
  })

  test('hides reasoning with --no-reasoning', async () => {
    const { stdout, stderr } = await k3([...run, '--chat', '--no-reasoning', question])
    expect(stdout).toBe(`${content}\n`)
    expect(stderr).not.toContain(reasoning_content)
  })

  test('gives both channels with --json', async () => {
    const object = await k3Object([...run, '--chat', '--json', question])
    expect(object).toMatchObject({ ids: chat.output_ids, text: content, reasoning: reasoning_content })
    expect(object.prompt_tokens).toBe(chat.prompt_ids.length)
  })

  test('puts --system before the question', async () => {
    const system = 'You answer in one word.'
    const one = [...run, '--chat', '--json', '--max-tokens', '1', '--system', system, question]
    const messages = [
      { role: 'system', content: system },
      { role: 'user', content: question }
    ]
    const { ids } = await k3Object(['render', '--json'], JSON.stringify({ messages }))
    expect((await k3Object(one)).prompt_tokens).toBe((ids as object[]).length)
  })
})

describe('k3 generate, sampling', () => {
  const warm = [...run, raw.text!, '--max-tokens', '24', '--json', '--temperature', '1.5']

  test('repeats a run from its seed, and reports a seed it drew', async () => {
    const first = await k3Object([...warm, '--seed', '7'])
    expect(first.seed).toBe('7')
    expect((await k3Object([...warm, '--seed', '7'])).ids).toEqual(first.ids)
    expect((await k3Object([...warm, '--seed', '8'])).ids).not.toEqual(first.ids)
    const drawn = await k3Object(warm)
    expect((await k3Object([...warm, '--seed', drawn.seed as string])).ids).toEqual(drawn.ids)
  })

  test('takes the most probable token when --top-p leaves no other', async () => {
    const { ids } = await k3Object([...warm, '--seed', '7', '--top-p', '0.000001'])
    expect(ids).toEqual(raw.output_ids.slice(0, 24))
  })

  test.each([
    ['--top-p without a temperature', ['--top-p', '0.5']],
    ['--seed without a temperature', ['--seed', '1']],
    ['a negative temperature', ['--temperature', '-1']],
    ['a top-p of 0', ['--temperature', '1', '--top-p', '0']],
    ['no prompt', null],
    ['two prompts', ['--ids', '1']],
    ['--system without --chat', ['--system', 'x']],
    ['--no-reasoning without --chat', ['--no-reasoning']],
    ['more layers than there are', ['--layers', '14']],
    ['fewer slots than a token needs', ['--cache-slots', '3']],
    ['more slots than there are experts', ['--cache-slots', '193']],
    ['a file that is not there', ['--prompt-file', '/nowhere/at/all']]
  ])('refuses %s', async (_, flags) => {
    const args = flags === null ? run : [...run, 'Hi', ...flags]
    const { code, stdout, stderr } = await k3(args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('k3: ')
  })

  test('refuses ids with --chat, and ids outside the vocabulary', async () => {
    expect((await k3([...run, '--chat', '--ids', '1'])).code).toBe(2)
    const outside = await k3([...run, '--ids', '1984'])
    expect(outside.code).toBe(2)
    expect(outside.stderr).toContain('ERR_K3_TOKEN_ID')
  })
})

describe('k3 generate, settings of the run', () => {
  test('keeps --cache-slots experts', async () => {
    const { cache } = await k3Object([...run, 'Hi', '--max-tokens', '4', '--json', '--cache-slots', '5'])
    expect(cache).toMatchObject({ slots: 5 })
  })

  test('runs --layers layers', async () => {
    const ids = async (layers: string) =>
      (await k3Object([...run, raw.text!, '--max-tokens', '6', '--json', '--layers', layers])).ids
    expect(await ids('13')).toEqual(raw.output_ids.slice(0, 6))
    expect(await ids('5')).not.toEqual(raw.output_ids.slice(0, 6))
  })

  test.each(supportedIsas())('runs on --isa %s', async (isa) => {
    const { ids } = await k3Object([...run, raw.text!, '--max-tokens', '4', '--json', '--isa', isa])
    expect(ids).toEqual(raw.output_ids.slice(0, 4))
  })

  test('refuses an instruction set this machine does not have', async () => {
    const missing = ['neon', 'avx512', 'avx2'].find((isa) => !(supportedIsas() as string[]).includes(isa))!
    const { code, stderr } = await k3([...run, 'Hi', '--isa', missing])
    expect([code, stderr]).toEqual([2, expect.stringContaining('ERR_ISA_UNSUPPORTED')])
  })

  test('writes the logits of the first step with --dump-logits', async () => {
    const file = path.join(scratchFolder(), 'logits.f32')
    await k3([...run, raw.text!, '--max-tokens', '2', '--dump-logits', file])
    const bytes = readFileSync(file)
    const logits = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
    expect(logits.length).toBe(1984)
    expect(logits.indexOf(logits.reduce((a, b) => Math.max(a, b)))).toBe(raw.output_ids[0])
  })

  test('fails when the logits cannot be written', async () => {
    const { code, stderr } = await k3([...run, 'Hi', '--dump-logits', '/nowhere/at/all'])
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/at\/all cannot be written: ENOENT.* \[ERR_OUTPUT_WRITE\]\n$/)
    ])
  })

  test('says how good a lookahead was, in words and in the object', async () => {
    const flags = [...run, raw.text!, '--max-tokens', '6', '--lookahead', '3', '--trunk', 'resident']
    const object = await k3Object([...flags, '--json', '--quiet'])
    const { predicted, chosen } = object.lookahead as { predicted: number[]; chosen: number[] }
    expect([predicted.length, chosen.length]).toEqual([3, 3])
    // five single tokens through the layers with experts
    expect(predicted).toEqual([60, 60, 60])
    expect((await k3(flags)).stderr).toMatch(/lookahead \d+ \d+ \d+ % right by rank/)
  })

  test('writes a time line with --timeline, calls and reads on one clock', async () => {
    const file = path.join(scratchFolder(), 'run.json')
    await k3([...run, raw.text!, '--max-tokens', '3', '--timeline', file, '--trunk', 'stream'])
    const { traceEvents: events } = JSON.parse(readFileSync(file, 'utf8')) as {
      traceEvents: { name: string; ph: string; cat: string; ts: number; dur?: number; id?: number }[]
    }
    const calls = events.filter(({ ph }) => ph === 'X')
    expect(calls.some(({ name }) => name === 'attention.project')).toBe(true)
    const [begins, ends] = ['b', 'e'].map((kind) => events.filter(({ ph }) => ph === kind))
    expect(begins!.length).toBeGreaterThan(0)
    expect(new Set(begins!.map(({ cat }) => cat))).toEqual(new Set(['read.wanted', 'read.trunk']))
    for (const begin of begins!) {
      const end = ends!.find(({ id }) => id === begin.id)!
      expect(end.ts).toBeGreaterThanOrEqual(begin.ts)
    }
    const isUnder = ({ ts, dur }: { ts: number; dur?: number }) =>
      begins!.some((begin) => begin.ts <= ts && ends!.find(({ id }) => id === begin.id)!.ts >= ts + dur!)
    expect(calls.some(isUnder)).toBe(true)
  })

  test('refuses a time line that cannot be written, and leaves none of a run that fails', async () => {
    expect((await k3([...run, 'Hi', '--timeline', '/nowhere/at/all'])).code).not.toBe(0)
    const file = path.join(scratchFolder(), 'run.json')
    await k3([...run, 'Hi', '--model', '/nowhere', '--timeline', file])
    expect(readdirSync(path.dirname(file))).toEqual([])
  })

  test('leaves the file of --dump-logits as it was when nothing ran', async () => {
    const dir = scratchFolder()
    const file = path.join(dir, 'logits.f32')
    const failing = [...run, 'Hi', '--model', '/nowhere/at/all', '--dump-logits', file]
    expect([(await k3(failing)).code, readdirSync(dir)]).toEqual([3, []])
    writeFileSync(file, 'earlier')
    expect([(await k3(failing)).code, readdirSync(dir)]).toEqual([3, ['logits.f32']])
    expect(readFileSync(file, 'utf8')).toBe('earlier')
  })

  test.skipIf(!existsSync('/dev/null'))('writes logits to a device as it is (needs /dev/null)', async () => {
    expect((await k3([...run, 'Hi', '--max-tokens', '1', '--dump-logits', '/dev/null'])).code).toBe(0)
    expect(existsSync('/dev/.null.part')).toBe(false)
  })

  test.each(['--model', '--dump-logits'])('refuses an empty path after %s', async (flag) => {
    expect((await k3([...run, 'Hi', flag, ''])).code).toBe(2)
  })

  test('refuses a folder that is no checkpoint', async () => {
    const { code, stderr } = await k3([...run, 'Hi', '--model', scratchFolder()])
    expect([code, stderr]).toEqual([3, expect.stringContaining('ERR_K3_CONFIG_FILE')])
  })

  test('refuses an expert with a scale that is no number, once a token needs it', async () => {
    const dir = scratchFolder()
    await k3(['synth', '--preset', 'tiny', '--seed', '5', '--out', dir, '--quiet'])
    const shard = path.join(dir, 'model-00003-of-000014.safetensors')
    const { tensors } = await k3Object(['inspect', '--file', shard, '--json'])
    const bytes = readFileSync(shard)
    for (const { name, offset } of tensors as { name: string; offset: number }[]) {
      if (name.endsWith('w3.weight_scale')) bytes[offset] = 255
    }
    writeFileSync(shard, bytes)
    const { code, stderr } = await k3([...run, '--model', dir, '--ids', '0,1,2'])
    expect([code, stderr]).toEqual([3, expect.stringContaining('ERR_K3_EXPERT_SCALE')])
    expect(stderr).toContain('layer 2')
  })

  test('generates ids where there is no tokenizer', async () => {
    const dir = scratchFolder()
    await k3(['synth', '--preset', 'tiny', '--seed', '5', '--out', dir])
    const args = [...run, '--model', dir, '--max-tokens', '3']
    const plain = await k3([...args, '--ids', '0,1,2'])
    expect(plain.stdout).toMatch(/^\d+ \d+ \d+\n$/)
    const { ids, text } = await k3Object([...args, '--ids', '0,1,2', '--json'])
    expect([plain.stdout, text]).toEqual([`${(ids as number[]).join(' ')}\n`, null])
    const refused = await k3([...args, 'Hi'])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('no tokenizer files')])
  })
})
