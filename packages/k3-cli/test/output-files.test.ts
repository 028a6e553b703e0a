import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { describe, expect, test } from 'vitest'
import { writeWhole } from '../src/write-whole.js'
import { k3, scratchFolder } from './k3.js'

const run = ['generate', 'Hi', '--max-tokens', '1', '--quiet', '--threads', '1']
const refused = async (args: readonly string[], message: RegExp) => {
  const { code, stdout, stderr } = await k3(args)
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(message)
  expect(stderr).toMatch(/\[ERR_USAGE\]\n$/)
}

describe('two outputs of one run', () => {
  test.each([
    ['the same path', (dir: string) => [`${dir}/out`, `${dir}/out`]],
    ['another spelling of it', (dir: string) => [`${dir}/out`, `${dir}/../${path.basename(dir)}/./out`]],
    ['a relative one', (dir: string) => [path.relative('.', `${dir}/out`), `${dir}/out`]],
    [
      'a folder by its link',
      (dir: string) => {
        mkdirSync(`${dir}/real`)
        symlinkSync(`${dir}/real`, `${dir}/link`)
        return [`${dir}/real/out`, `${dir}/link/out`]
      }
    ],
    [
      'a link to the file',
      (dir: string) => {
        writeFileSync(`${dir}/out`, '')
        symlinkSync(`${dir}/out`, `${dir}/link`)
        return [`${dir}/out`, `${dir}/link`]
      }
    ],
    [
      'a link to where the file will be',
      (dir: string) => {
        symlinkSync('out', `${dir}/link`)
        return [`${dir}/out`, `${dir}/link`]
      }
    ],
    [
      'another name of the file',
      (dir: string) => {
        writeFileSync(`${dir}/out`, '')
        linkSync(`${dir}/out`, `${dir}/name`)
        return [`${dir}/out`, `${dir}/name`]
      }
    ]
  ])('are refused for %s', async (_, paths) => {
    const [logits, timeline] = paths(scratchFolder())
    await refused(
      [...run, '--dump-logits', logits!, '--timeline', timeline!],
      /--timeline .* would overwrite what --dump-logits writes/
    )
  })

  test('are written when they are two files of one name, or one device', async () => {
    const [a, b] = [scratchFolder(), scratchFolder()]
    const outputs = ['--dump-logits', `${a}/out`, '--timeline', `${b}/out`]
    expect((await k3([...run, ...outputs])).code).toBe(0)
    expect(readFileSync(`${a}/out`).length).toBeGreaterThan(0)
    expect(JSON.parse(readFileSync(`${b}/out`, 'utf8'))).toHaveProperty('traceEvents')
    if (!existsSync('/dev/null')) return
    expect((await k3([...run, '--dump-logits', '/dev/null', '--timeline', '/dev/null'])).code).toBe(0)
  })
})

describe('an output in place of an input', () => {
  const copy = () => {
    const dir = scratchFolder()
    cpSync(modelDir, dir, { recursive: true })
    return dir
  }
  const shard = 'model-00001-of-000006.safetensors'

  test.each(['--dump-logits', '--timeline'])('is refused for %s', async (flag) => {
    const dir = copy()
    const beside = scratchFolder()
    symlinkSync(path.join(dir, shard), path.join(beside, 'link'))
    const message = new RegExp(`${flag} .* would overwrite .*, a file of the model`)
    const model = ['--model', dir]
    for (const name of [shard, 'config.json', 'tiktoken.model', 'model.safetensors.index.json'])
      await refused([...run, ...model, flag, path.join(dir, name)], message)
    await refused([...run, ...model, flag, path.join(beside, 'link')], message)
    const also = [...run, '--also', dir, flag, path.join(dir, shard)]
    await refused(also, message)
    expect(readFileSync(path.join(dir, shard))).toEqual(readFileSync(path.join(modelDir, shard)))
    const allowed = path.join(dir, 'logits.f32')
    for (let i = 0; i < 2; i++) expect((await k3([...run, ...model, flag, allowed])).code).toBe(0)
  })

  test('is refused for a prompt, a trace, and the model of a trace', async () => {
    const dir = copy()
    const prompt = path.join(dir, 'prompt')
    writeFileSync(prompt, 'Hi')
    const byFile = ['--prompt-file', prompt, '--max-tokens', '1', '--quiet']
    await refused(['generate', ...byFile, '--timeline', prompt], /overwrite what --prompt-file reads/)
    await refused(['trace', 'record', ...byFile, '--out', prompt], /overwrite what --prompt-file reads/)
    const config = path.join(dir, 'config.json')
    await refused(['trace', 'record', 'Hi', '--model', dir, '--out', config], /a file of the model/)
    await refused(
      ['trace', 'compare', prompt, '--slots', '8', '--svg', prompt],
      /overwrite what the argument/
    )
    expect(readFileSync(prompt, 'utf8')).toBe('Hi')
  })
})

describe('an output by a link', () => {
  const record = ['trace', 'record', 'Hi', '--max-tokens', '1', '--quiet', '--threads', '1', '--out']
  const trace = path.join(scratchFolder(), 'trace')
  const places = () => {
    const dir = scratchFolder()
    const [target, link] = [path.join(dir, 'target'), path.join(dir, 'link')]
    writeFileSync(target, 'old')
    symlinkSync('target', link)
    return { dir, target, link }
  }

  test.each([
    ['--dump-logits', [...run, '--dump-logits']],
    ['--timeline', [...run, '--timeline']],
    ['--out of trace record', record],
    ['--svg', ['trace', 'compare', trace, '--slots', '8', '--svg']]
  ])('is written where the link leads: %s', async (_, args) => {
    expect((await k3([...record, trace])).code).toBe(0)
    const { dir, target, link } = places()
    for (const isThere of [true, false]) {
      if (!isThere) rmSync(target)
      expect((await k3([...args, link])).code).toBe(0)
      expect(lstatSync(link).isSymbolicLink()).toBe(true)
      expect(readFileSync(target, 'latin1')).not.toBe('old')
      expect(readdirSync(dir)).toEqual(['link', 'target'])
    }
  })

  test('is written in the place of links in a circle', async () => {
    const link = path.join(scratchFolder(), 'link')
    symlinkSync('link', link)
    expect((await k3([...run, '--dump-logits', link])).code).toBe(0)
    expect(readFileSync(link).length).toBeGreaterThan(0)
  })

  test('is written where the link leads when a chat is saved', async () => {
    const { dir, target, link } = places()
    for (const text of ['over the old', 'where nothing is']) {
      if (text === 'where nothing is') rmSync(target)
      await writeWhole(link, text, 0o600)
      expect(lstatSync(link).isSymbolicLink()).toBe(true)
      expect([readFileSync(target, 'utf8'), readdirSync(dir)]).toEqual([text, ['link', 'target']])
    }
  })

  test('is refused for a pipe that nobody reads, which stays one', async () => {
    const pipe = path.join(scratchFolder(), 'pipe')
    execFileSync('mkfifo', [pipe])
    const { code, stderr } = await k3([...record, pipe])
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/pipe cannot be written: ENXIO.*\[ERR_TRACE_WRITE\]\n$/)
    ])
    expect(lstatSync(pipe).isFIFO()).toBe(true)
  })
})

describe('an output that cannot be written', () => {
  const nowhere = () => path.join(scratchFolder(), 'no', 'such', 'folder')
  const places: [string, () => string][] = [
    ['ENOENT', nowhere],
    ['EISDIR', scratchFolder],
    ['ENOTDIR', () => path.join(modelDir, 'config.json', 'out')]
  ]
  if (existsSync('/proc/sys/kernel')) places.push(['ENOENT|EACCES|EPERM', () => '/proc/out'])
  if (process.getuid?.() !== 0)
    places.push([
      'EACCES',
      () => {
        const dir = scratchFolder()
        chmodSync(dir, 0o500)
        return path.join(dir, 'out')
      }
    ])
  const commands: [string, string[], string][] = [
    ['--dump-logits', [...run, '--dump-logits'], 'ERR_OUTPUT_WRITE'],
    ['--timeline', [...run, '--timeline'], 'ERR_OUTPUT_WRITE'],
    ['--out', ['trace', 'record', 'Hi', '--max-tokens', '1', '--quiet', '--out'], 'ERR_TRACE_WRITE'],
    ['--csv', ['bench', 'kernels', '--seconds', '1', '--csv'], 'ERR_BENCH_WRITE']
  ]

  test.each(
    commands.flatMap(([flag, args, code]) => places.map((place) => [flag, ...place, args, code] as const))
  )('is named: %s, %s', async (_, reason, place, args, code) => {
    const file = place()
    const outcome = await k3([...args, file])
    expect([outcome.code, outcome.stdout]).toEqual([1, ''])
    expect(outcome.stderr).toContain(`k3: ${file} cannot be written: `)
    expect(outcome.stderr).toMatch(new RegExp(`(${reason}).* \\[${code}\\]\\n$`))
  })

  test.skipIf(!existsSync('/dev/full'))('is named when the disk is full (needs /dev/full)', async () => {
    for (const flag of ['--dump-logits', '--timeline']) {
      const { code, stderr } = await k3([...run, flag, '/dev/full'])
      expect([code, stderr]).toEqual([
        4,
        expect.stringMatching(/k3: \/dev\/full cannot be written: ENOSPC.* \[ERR_OUTPUT_WRITE\]\n$/)
      ])
    }
  })
})
