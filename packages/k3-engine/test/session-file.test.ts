import { spawn } from 'node:child_process'
import { appendFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { KdaState } from '@k3/kda'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Model } from '../src/model.js'
import { openModel } from '../src/open-model.js'
import { Random } from '../src/random.js'
import { createSampler } from '../src/sampler.js'
import { formatSessionHeader } from '../src/session-file/format.js'
import { NO_LAYER, SECTION, type sectionsOf } from '../src/session-file/sections.js'
import type { FileCalls } from '../src/session-file/write-atomically.js'
import { writeSession } from '../src/session-file/write-session.js'
import { SequenceState } from '../src/states.js'
import { codeOf, copyOfDemo, demoCase, patch, temporaryFolder } from './demo-cases.js'

const { prompt, output } = demoCase('raw-01')
const folder = temporaryFolder()
const saved = path.join(folder, 'saved.k3s')
const sampled = () => createSampler({ temperature: 2, topP: 0.95, seed: 9, frequencyPenalty: 0.4 })

let model: Model
beforeAll(async () => {
  model = await openModel(modelDir, { threads: 2 })
  const session = model.createSession()
  await session.append(prompt)
  await session.save(saved)
})
afterAll(() => model[Symbol.asyncDispose]())

describe('a saved session', () => {
  it('goes on with the bits it would have had, in a model opened otherwise', async () => {
    const session = model.createSession()
    await session.append([...prompt, ...output.slice(0, 5)])
    const file = path.join(folder, 'other.k3s')
    await session.save(file)
    const other = await openModel(modelDir, { threads: 1, isa: 'scalar', cacheSlots: 5, chunkTokens: 3 })
    const loaded = await other.loadSession(file)
    expect(loaded.ids).toEqual(session.ids)
    expect(loaded.logits).toEqual(session.logits)
    for (const id of output.slice(5, 9)) expect(await loaded.step(id)).toEqual(await session.step(id))
    await other[Symbol.asyncDispose]()
  })

  it('continues greedy and sampled generations as if it had not stopped', async () => {
    for (const sampler of [() => undefined, sampled]) {
      const whole = await model.generate({ ids: prompt, maxTokens: 12, sampler: sampler() })
      const part = await model.generate({
        session: await model.loadSession(saved),
        ids: [],
        maxTokens: 12,
        sampler: sampler()
      })
      expect(part.ids).toEqual(whole.ids)
      expect(part).toMatchObject({
        text: whole.text,
        reusedTokens: prompt.length,
        promptTokens: prompt.length
      })
    }
  })

  it('can be empty', async () => {
    const file = path.join(folder, 'empty.k3s')
    await model.createSession().save(file)
    const session = await model.loadSession(file)
    expect([session.position, session.logits]).toEqual([0, null])
    const fresh = model.createSession()
    expect(await session.append(prompt)).toEqual(await fresh.append(prompt))
  })

  it('is the same file again when nothing happened, readable by its owner alone', async () => {
    const file = path.join(folder, 'again.k3s')
    await (await model.loadSession(saved)).save(file)
    expect(readFileSync(file).equals(readFileSync(saved))).toBe(true)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('waits for calls that are running', async () => {
    const session = model.createSession()
    const file = path.join(folder, 'queued.k3s')
    await Promise.all([session.append(prompt), session.save(file), session.step(7)])
    expect((await model.loadSession(file)).ids).toEqual(prompt)
    expect(session.ids).toEqual([...prompt, 7])
  })
})

describe('a session file', () => {
  const damagedFile = path.join(folder, 'damaged.k3s')
  const failure = async (change: (file: string) => void, reader = model) => {
    writeFileSync(damagedFile, readFileSync(saved))
    change(damagedFile)
    return codeOf(reader.loadSession(damagedFile))
  }

  it('with any one bit flipped is refused by name', async () => {
    const bytes = readFileSync(saved)
    const headerBytes = bytes.readUInt32LE(12) * 48 + 128
    const random = new Random(3n)
    const anywhere = (limit: number) => Math.floor(random.next() * limit)
    const places = [
      ...Array.from({ length: 128 }, (_, i) => i),
      ...Array.from({ length: 100 }, () => anywhere(headerBytes)),
      ...Array.from({ length: 150 }, () => anywhere(bytes.length)),
      bytes.length - 1
    ]
    const codes = new Set<string | undefined>()
    for (const at of places) {
      codes.add(await failure((file) => patch(file, at, [bytes[at]! ^ (1 << anywhere(8))])))
    }
    expect([...codes].sort()).toEqual([
      'ERR_K3_SESSION_CHECKSUM',
      'ERR_K3_SESSION_MAGIC',
      'ERR_K3_SESSION_VERSION'
    ])
  })

  it('that was cut or added to is refused by name', async () => {
    const { size } = statSync(saved)
    for (const length of [0, 1, 127, 128, 129, 1000, size >> 1, size - 1]) {
      expect(await failure((file) => truncateSync(file, length))).toBe('ERR_K3_SESSION_SIZE')
    }
    expect(await failure((file) => appendFileSync(file, '\n'))).toBe('ERR_K3_SESSION_SIZE')
  })

  it('of another version, another kind, or that is not there, is refused by name', async () => {
    expect(await failure((file) => patch(file, 8, [0]))).toBe('ERR_K3_SESSION_VERSION')
    expect(await failure((file) => patch(file, 8, [2]))).toBe('ERR_K3_SESSION_VERSION')
    expect(await failure((file) => writeFileSync(file, 'x'.repeat(500)))).toBe('ERR_K3_SESSION_MAGIC')
    expect(await codeOf(model.loadSession(path.join(folder, 'missing')))).toBe('ERR_K3_SESSION_READ')
    expect(await codeOf(model.loadSession(folder))).toBe('ERR_K3_SESSION_READ')
  })

  it('of another architecture, of fewer layers, or of other weights, is refused by name', async () => {
    const changedEps = copyOfDemo()
    const config = readFileSync(path.join(changedEps, 'config.json'), 'utf8')
    writeFileSync(path.join(changedEps, 'config.json'), config.replace(/("rms_norm_eps": )[^,]+/, '$12e-5'))
    const changedWeight = copyOfDemo()
    const shard = path.join(changedWeight, 'model-00003-of-000006.safetensors')
    patch(shard, statSync(shard).size - 1, [readFileSync(shard).at(-1)! ^ 1])
    const readers: [string, Parameters<typeof openModel>][] = [
      ['ERR_K3_SESSION_ARCHITECTURE', [changedEps]],
      ['ERR_K3_SESSION_ARCHITECTURE', [modelDir, { layers: 12 }]],
      ['ERR_K3_SESSION_ARCHITECTURE', [modelDir, { expertActivations: 'int8' }]],
      ['ERR_K3_SESSION_CHECKPOINT', [changedWeight]],
      ['resolved', [copyOfDemo()]]
    ]
    for (const [code, opening] of readers) {
      const reader = await openModel(...opening)
      expect(await codeOf(reader.loadSession(saved))).toBe(code)
      await reader[Symbol.asyncDispose]()
    }
  })

  it('made up with right checksums is refused when its sections are not those of a session', async () => {
    const { architecture, checkpoint } = await model.identity()
    const bytes = readFileSync(saved)
    const identity = { architecture, checkpoint }
    const ids = (...given: number[]) => ({
      kind: SECTION.ids,
      layer: NO_LAYER,
      bytes: new Uint8Array(Uint32Array.from(given).buffer)
    })
    const write = async (tokens: number, sections: ReturnType<typeof sectionsOf>) => {
      writeFileSync(
        damagedFile,
        Buffer.concat([
          formatSessionHeader(identity, tokens, sections),
          ...sections.map((section) => section.bytes)
        ])
      )
      return codeOf(model.loadSession(damagedFile))
    }
    expect(await write(1, [])).toBe('ERR_K3_SESSION_SECTIONS')
    expect(await write(1, [ids(1)])).toBe('ERR_K3_SESSION_SECTIONS')
    expect(await write(2 ** 40, [ids(1)])).toBe('ERR_K3_CONTEXT_FULL')
    let at = bytes.readUInt32LE(12) * 48 + 128
    const good = Array.from({ length: bytes.readUInt32LE(12) }, (_, i) => {
      const entry = 128 + i * 48
      const length = Number(bytes.readBigUInt64LE(entry + 8))
      at += length
      return {
        kind: bytes.readUInt32LE(entry),
        layer: bytes.readUInt32LE(entry + 4),
        bytes: bytes.subarray(at - length, at)
      }
    })
    expect(await write(prompt.length, good)).toBe('resolved')
    expect(await write(prompt.length, [ids(1, 2, 3, 4, 5, 1984), ...good.slice(1)])).toBe(
      'ERR_K3_SESSION_SECTIONS'
    )
    expect(
      await write(prompt.length, [...good.slice(0, 3), { ...good[3]!, layer: 9 }, ...good.slice(4)])
    ).toBe('ERR_K3_SESSION_SECTIONS')
  })
})

describe('a save that fails', () => {
  const real: FileCalls = { open, rename, rm }
  const noSpace = () => Promise.reject(Object.assign(new Error('no space left'), { code: 'ENOSPC' }))
  /** A disk that is full after some bytes, or whose files cannot be flushed. */
  const withHandle = (change: (handle: Awaited<ReturnType<typeof open>>) => void): FileCalls => ({
    ...real,
    open: async (...given) => {
      const handle = await open(...given)
      if (given[1] === 'wx') change(handle)
      return handle
    }
  })
  const calls: [string, FileCalls][] = [
    ['no file can be made', { ...real, open: noSpace as never }],
    [
      'the disk is full after some sections',
      withHandle((handle) => {
        const write = handle.write.bind(handle)
        let writes = 0
        handle.write = ((...given: Parameters<typeof write>) =>
          ++writes > 5 ? noSpace() : write(...given)) as never
      })
    ],
    [
      'the disk cannot be flushed',
      withHandle((handle) => {
        handle.sync = noSpace as never
      })
    ],
    ['the new file cannot take the old name', { ...real, rename: noSpace as never }]
  ]

  it.each(calls)('because %s leaves the old file and nothing else', async (_, broken) => {
    const dir = temporaryFolder()
    const file = path.join(dir, 'kept.k3s')
    writeFileSync(file, 'the old session')
    const kda = Array.from({ length: 4 }, () => new KdaState(new Float32Array(8), new Float32Array(4)))
    await expect(
      writeSession(file, await model.identity(), new SequenceState(kda), broken)
    ).rejects.toMatchObject({ code: 'ERR_K3_SESSION_WRITE', file, cause: { code: 'ENOSPC' } })
    expect([readdirSync(dir), readFileSync(file, 'utf8')]).toEqual([['kept.k3s'], 'the old session'])
  })

  it('because of its path is refused by name and leaves the session usable', async () => {
    const session = await model.loadSession(saved)
    expect(await codeOf(session.save(path.join(folder, 'missing', 'file')))).toBe('ERR_K3_SESSION_WRITE')
    expect(await codeOf(session.save(folder))).toBe('ERR_K3_SESSION_WRITE')
    expect(await codeOf(session.step(1))).toBe('resolved')
  })

  it('because the process is killed leaves a whole file', async () => {
    const dir = temporaryFolder()
    const file = path.join(dir, 'killed.k3s')
    const source = `
      const { openModel } = require(${JSON.stringify(path.join(import.meta.dirname, '..', 'dist', 'index.cjs'))})
      const run = async () => {
        const model = await openModel(${JSON.stringify(modelDir)}, { threads: 1 })
        const sessions = [model.createSession(), model.createSession()]
        for (const [i, session] of sessions.entries()) await session.append(new Array(100 + i).fill(7 + i))
        for (let i = 0; ; i++) {
          await sessions[i % 2].save(${JSON.stringify(file)})
          if (i === 1) process.stdout.write('saving')
        }
      }
      run()`
    for (const delayMs of [0, 5]) {
      const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'inherit'] })
      await new Promise((resolve) => child.stdout.once('data', resolve))
      await new Promise((resolve) => setTimeout(resolve, delayMs))
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
      expect([100, 101]).toContain((await model.loadSession(file)).position)
    }
  }, 30_000)

  it('because a layer keeps a state of its own is refused by name', async () => {
    const other = await openModel(modelDir, {
      layers: 1,
      parts: {
        layer: (layer, _, half) =>
          half === 'ffn'
            ? layer
            : {
                createState: () => ({ bytes: 0, copy: () => ({}) as never }),
                forward: (_x, _state, out) => void out.fill(0)
              }
      }
    })
    expect(await codeOf(other.createSession().save(path.join(folder, 'custom')))).toBe('ERR_K3_SESSION_STATE')
    await other[Symbol.asyncDispose]()
  })
})
