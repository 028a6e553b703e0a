import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync
} from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { createPool } from '@k3/task-pool'
import { openReader, type Reader, type Region, UringError } from '@k3/uring'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openCheckpoint } from '../src/checkpoint/open-checkpoint.js'
import type { Checkpoint } from '../src/checkpoint/types.js'
import { DiskExperts } from '../src/experts.js'
import type { ExpertBatch, ExpertSource, WeightSource } from '../src/interfaces.js'
import type { ModelOptions } from '../src/model-options.js'
import { openModel } from '../src/open-model.js'
import { openTrunk } from '../src/open-trunk.js'
import { layerTensorName } from '../src/tensor-names.js'
import { choosePlacement } from '../src/trunk-placement.js'
import { HEAD } from '../src/trunk-segments.js'
import { codeOf, copyOfDemo, demoCase, patch } from './demo-cases.js'

const { prompt, output } = demoCase('raw-01')
const answerOf = async (dir: string, options: ModelOptions) => {
  await using model = await openModel(dir, { threads: 2, ...options })
  return { ids: (await model.generate({ ids: prompt, maxTokens: 6 })).ids, backend: model.backend }
}

const pool = createPool({ threads: 1 })
let checkpoint: Checkpoint
beforeAll(async () => {
  checkpoint = await openCheckpoint(modelDir)
})
afterAll(() => pool.close())

/** A reader whose reads fail like those of a broken drive, as long as `isBroken` says so. */
const failing = (reader: Reader, isBroken: () => boolean): Reader => {
  const submit: Reader['submit'] = (reads, urgency) => {
    const batch = reader.submit(reads, urgency)
    const broken = isBroken()
    const wait = (index: number) => {
      batch.wait(index)
      if (broken) throw new UringError('ERR_URING_READ', 'a file cannot be read: EIO')
    }
    const ended = (index: number) => batch.ended(index)
    return { ...batch, wait, ended, giveUp: () => batch.giveUp(), hurry: () => batch.hurry() }
  }
  return Object.assign(Object.create(reader) as Reader, { submit })
}

const drain = (batch: ExpertBatch): number[] => {
  const [positions, bases] = [new Int32Array(16), new Float64Array(16)]
  const seen: number[] = []
  for (let n = batch.arrive(positions, bases); n > 0; n = batch.arrive(positions, bases))
    seen.push(...positions.subarray(0, n))
  batch.end()
  return seen.sort((a, b) => a - b)
}

describe('a drive that fails', () => {
  it('gives its error to the layer that needs the experts, and loses no slot', async () => {
    await using reader = openReader(checkpoint.files)
    let isBroken = true
    const inspect = () => undefined
    const source = new DiskExperts(
      checkpoint,
      failing(reader, () => isBroken),
      {
        slots: 4,
        policy: 'lru',
        inspect
      }
    )
    for (let i = 0; i < 5; i++) {
      const batch = source.begin(2, Int32Array.of(1, 2, 3, 4), 1)
      expect(() => drain(batch)).toThrow(/EIO/)
      batch.abort()
    }
    source.expect(2, Int32Array.of(5, 6))
    isBroken = false
    const all = Int32Array.from({ length: 16 }, (_, i) => i)
    expect(drain(source.begin(2, all, 1))).toEqual([...all])
    source.close()
  })

  it('gives its error to the product that needs the trunk, and can be used again', async () => {
    await using reader = openReader(checkpoint.files)
    let isBroken = false
    const { plan, config } = checkpoint
    const sizes = { layerCount: plan.length, vocabSize: config.vocabSize, mostHeadRows: 100 }
    const native = { pool, isa: 'auto' as const }
    const broken = failing(reader, () => isBroken)
    const trunk = openTrunk(choosePlacement({ trunk: 'stream' }, sizes), {
      checkpoint,
      plan,
      reader: broken,
      native,
      chunkTokens: 1
    })
    const name = layerTensorName(2, 'self_attn.o_proj.weight')
    const [rows, cols] = checkpoint.extent(name).shape as [number, number]
    const linears = trunk.linears([name])
    const x = new Float32Array(cols).fill(1)
    const out = new Float32Array(rows)
    isBroken = true
    trunk.begin(true)
    expect(() => linears.apply(x, [out], 1)).toThrow(/EIO/)
    expect(() => trunk.embed([1], new Float32Array(config.hiddenSize))).toThrow(/EIO/)
    isBroken = false
    trunk.begin(true)
    linears.apply(x, [out], 1)
    expect(out.every(Number.isFinite)).toBe(true)
    trunk.close()
  })
})

describe('reads that are not needed any more', () => {
  /** A drive that is so slow that nothing has been begun by the time somebody waits. */
  const slow = (reader: Reader) => {
    let waitedInVain = 0
    const submit: Reader['submit'] = (reads, urgency) => {
      const batch = reader.submit(reads, urgency)
      let isGivenUp = false
      const over = new Set<number>()
      const wait = (index: number) => {
        batch.wait(index)
        over.add(index)
        if (isGivenUp) throw new UringError('ERR_URING_GIVEN_UP', 'it was given up')
        if (urgency === 0 && index === 0) throw new UringError('ERR_URING_READ', 'a file cannot be read: EIO')
        waitedInVain++
      }
      const giveUp = () => {
        isGivenUp = true
      }
      return { ...batch, wait, giveUp, ended: (index) => over.has(index), hurry: () => undefined }
    }
    return {
      reader: Object.assign(Object.create(reader) as Reader, { submit }),
      waitedInVain: () => waitedInVain
    }
  }
  const settings = { slots: 8, policy: 'lru' as const, inspect: () => undefined }

  it('are given up when one of their batch has failed', async () => {
    await using reader = openReader(checkpoint.files)
    const drive = slow(reader)
    const source = new DiskExperts(checkpoint, drive.reader, settings)
    const batch = source.begin(2, Int32Array.of(1, 2, 3, 4), 1)
    expect(() => drain(batch)).toThrow(/EIO/)
    batch.abort()
    expect(drive.waitedInVain()).toBe(0)
    source.close()
  })

  it('are over when their batch has been aborted, so that none writes into a slot that is claimed again', async () => {
    await using reader = openReader(checkpoint.files)
    const over = new Set<number>()
    const submit: Reader['submit'] = (reads, urgency) => {
      const batch = reader.submit(reads, urgency)
      const wait = (index: number) => {
        try {
          batch.wait(index)
        } finally {
          over.add(index)
        }
        if (index === 0) throw new UringError('ERR_URING_READ', 'a file cannot be read: EIO')
      }
      return { ...batch, wait, ended: (index) => batch.ended(index), giveUp: () => batch.giveUp() }
    }
    const drive = Object.assign(Object.create(reader) as Reader, { submit })
    const source = new DiskExperts(checkpoint, drive, settings)
    const batch = source.begin(2, Int32Array.of(1, 2, 3, 4), 1)
    expect(() => drain(batch)).toThrow(/EIO/)
    expect(over).toEqual(new Set([0]))
    batch.abort()
    expect(over).toEqual(new Set([0, 1, 2, 3]))
    source.close()
  })

  it('are read anew when they were predicted, given up, and chosen after all', async () => {
    await using reader = openReader(checkpoint.files)
    let isSlow = true
    const drive = slow(reader)
    const submit: Reader['submit'] = (reads, urgency) =>
      (isSlow ? drive.reader : reader).submit(reads, urgency)
    const source = new DiskExperts(
      checkpoint,
      Object.assign(Object.create(reader) as Reader, { submit }),
      settings
    )
    source.expect(2, Int32Array.of(5, 6))
    isSlow = false
    expect(drain(source.begin(2, Int32Array.of(1, 2, 3, 4), 1))).toEqual([0, 1, 2, 3])
    expect(drain(source.begin(2, Int32Array.of(5, 1, 2, 3), 1))).toEqual([0, 1, 2, 3])
    source.close()
  })
})

describe('a read that fails', () => {
  it('says whose bytes are missing', async () => {
    const dir = copyOfDemo()
    const other = await openCheckpoint(dir)
    const [query, output] = ['q_proj', 'o_proj'].map((name) =>
      other.extent(layerTensorName(9, `self_attn.${name}.weight`))
    )
    const lower = query!.offset < output!.offset ? output! : query!
    const tensor = layerTensorName(9, `self_attn.${lower === output ? 'o_proj' : 'q_proj'}.weight`)
    await using model = await openModel(dir, { trunk: 'stream', cacheSlots: 4 })
    const cut = () => truncateSync(other.files[lower.file]!, lower.offset + 1)
    const error = await model
      .forward([1], { observe: ({ layer }) => layer === 0 && cut() })
      .then(undefined, (cause: unknown) => cause)
    expect(error).toMatchObject({ code: 'ERR_URING_EOF', tensor, file: other.files[lower.file] })
    expect((error as Error).message).toContain(tensor)
  })
})

describe('an embedding row that cannot be read', () => {
  it('gives its error when nothing is written any more where the next rows go', async () => {
    await using reader = openReader(checkpoint.files)
    const over = new Set<number>()
    const submit: Reader['submit'] = (reads, urgency) => {
      const batch = reader.submit(reads, urgency)
      const wait = (index: number) => {
        batch.wait(index)
        over.add(index)
        if (index === 0) throw new UringError('ERR_URING_READ', 'a file cannot be read: EIO')
      }
      return { ...batch, wait, ended: (index) => batch.ended(index), giveUp: () => batch.giveUp() }
    }
    const { plan, config } = checkpoint
    const sizes = { layerCount: plan.length, vocabSize: config.vocabSize, mostHeadRows: 100 }
    const trunk = openTrunk(choosePlacement({ trunk: 'stream' }, sizes), {
      checkpoint,
      plan,
      reader: Object.assign(Object.create(reader) as Reader, { submit }),
      native: { pool, isa: 'auto' },
      chunkTokens: 3
    })
    expect(() => trunk.embed([1, 2, 3], new Float32Array(3 * config.hiddenSize))).toThrow(/EIO/)
    expect(over).toEqual(new Set([0, 1, 2]))
    trunk.close()
  })
})

describe('a shard that is cut off under an open model', () => {
  it.each(['stream', 'resident'] as const)('ends the request by name, trunk %s', async (trunk) => {
    const dir = copyOfDemo()
    const { files } = await openCheckpoint(dir)
    await using model = await openModel(dir, { trunk, cacheSlots: 4 })
    const layer = checkpoint.extent(layerTensorName(9, 'self_attn.o_proj.weight'))
    const cut = () => truncateSync(files[layer.file]!, layer.offset)
    const run = model.forward(prompt, { observe: ({ layer: done }) => done === 0 && cut() })
    // if everything had arrived before, the end of the pass notices
    expect(['ERR_K3_SHARD_CHANGED', 'ERR_URING_EOF']).toContain(await codeOf(run))
    expect(await codeOf(model.forward(prompt))).toBe('ERR_K3_SHARD_CHANGED')
  })
})

describe('a shard that is exchanged under an open model', () => {
  const exchanges: Record<string, (file: string) => void> = {
    'is replaced': (file) => {
      copyFileSync(file, `${file}.new`)
      renameSync(`${file}.new`, file)
    },
    'is written to': (file) => patch(file, statSync(file).size - 1, [1]),
    'is removed': (file) => rmSync(file)
  }
  it.each(Object.keys(exchanges))('gives no token when it %s', async (how) => {
    for (const trunk of ['mmap', 'stream'] as const) {
      const dir = copyOfDemo()
      const { files } = await openCheckpoint(dir)
      await using model = await openModel(dir, { trunk, cacheSlots: 4 })
      await model.forward([1])
      exchanges[how]!(files[0]!)
      const error = await model.forward([1]).then(undefined, (cause: unknown) => cause)
      expect(error).toMatchObject({ code: 'ERR_K3_SHARD_CHANGED', file: files[0] })
    }
  })

  it('gives no token of a pass whose head was read from other bytes', async () => {
    const dir = copyOfDemo()
    const { files } = await openCheckpoint(dir)
    const weights = (builtIn: WeightSource): WeightSource => ({
      vector: (name) => builtIn.vector(name),
      tensor: (name, bind) => builtIn.tensor(name, bind),
      linears: (names) => {
        const linears = builtIn.linears(names)
        if (!names.includes(HEAD)) return linears
        return {
          apply: (...args) => {
            exchanges['is written to']!(files[0]!)
            linears.apply(...args)
          }
        }
      }
    })
    await using model = await openModel(dir, { trunk: 'stream', parts: { weights } })
    expect(await codeOf(model.forward([1]))).toBe('ERR_K3_SHARD_CHANGED')
  })

  it.each(['is replaced', 'is written to', 'is removed'])(
    'saves no session as one of this model when it %s',
    async (how) => {
      const dir = copyOfDemo()
      const { files } = await openCheckpoint(dir)
      await using model = await openModel(dir)
      const session = model.createSession()
      await session.append([1])
      exchanges[how]!(files[0]!)
      const saved = path.join(dir, 'saved')
      const error = await session.save(saved).then(undefined, (cause: unknown) => cause)
      expect(error).toMatchObject({ code: 'ERR_K3_SHARD_CHANGED', file: files[0] })
      expect(existsSync(saved)).toBe(false)
    }
  )

  it('is named when it goes away while the model is opened', async () => {
    const dir = copyOfDemo()
    const { files } = await openCheckpoint(dir)
    // this option is looked at between the headers and the first read
    const options = {
      get direct() {
        rmSync(files[1]!, { force: true })
        return 'auto' as const
      }
    }
    const error = await openModel(dir, options).then(undefined, (cause: unknown) => cause)
    expect(error).toMatchObject({ code: 'ERR_K3_SHARD_CHANGED', file: files[1] })
  })

  it('gives no token of the pass that was running', async () => {
    const dir = copyOfDemo()
    const { files } = await openCheckpoint(dir)
    await using model = await openModel(dir, { trunk: 'stream' })
    const observe = ({ layer }: { layer: number }) => layer === 3 && exchanges['is written to']!(files[0]!)
    expect(await codeOf(model.forward([1], { observe }))).toBe('ERR_K3_SHARD_CHANGED')
  })
})

describe('a file system without direct reads', () => {
  const shared = '/dev/shm'
  const isTmpfs = existsSync(shared) && statfsSync(shared).type === 0x01021994
  it('is read through the page cache, or refused when direct reads were asked for', async ({ skip }) => {
    if (!isTmpfs) return skip('there is no tmpfs here')
    const dir = mkdtempSync(path.join(shared, 'k3-engine-'))
    try {
      cpSync(modelDir, dir, { recursive: true })
      const { ids, backend } = await answerOf(dir, { trunk: 'stream' })
      expect(ids).toEqual(output.slice(0, 6))
      // newer kernels read a tmpfs directly
      if (backend.includes('page cache'))
        expect(await codeOf(answerOf(dir, { direct: 'on' }))).toBe('ERR_URING_DIRECT')
    } finally {
      rmSync(dir, { recursive: true })
    }
  })
})

describe('memory of a model', () => {
  it('is given back when it is closed, whatever is still bound to it', async () => {
    await using reader = openReader(checkpoint.files)
    const source = new DiskExperts(checkpoint, reader, { slots: 4, policy: 'lru', inspect: () => undefined })
    drain(source.begin(2, Int32Array.of(1, 2, 3, 4), 1))
    const { plan, config } = checkpoint
    const sizes = { layerCount: plan.length, vocabSize: config.vocabSize, mostHeadRows: 100 }
    const parts = {
      checkpoint,
      plan,
      reader,
      native: { pool, isa: 'auto' as const },
      chunkTokens: 1,
      nodes: []
    }
    const trunk = openTrunk(choosePlacement({ trunk: 'stream' }, sizes), parts)
    const bytesOf = (region: unknown) => (region as Region).view(0, 2 ** 15)
    const matrix = layerTensorName(3, 'self_attn.kv_b_proj.weight')
    const views = [
      bytesOf(source.region),
      trunk.tensor(matrix, (weights) => bytesOf((weights as { region: unknown }).region))()
    ]
    for (const view of views) expect(view.some((byte) => byte !== 0)).toBe(true)
    source.close()
    trunk.close()
    for (const view of views) expect(view.every((byte) => byte === 0)).toBe(true)
  })
})

describe('a streamed model', () => {
  it('can be aborted in the middle of a pass and run again', async () => {
    await using model = await openModel(modelDir, {
      threads: 2,
      trunk: 'stream',
      cacheSlots: 5,
      lookahead: 4
    })
    const want = await model.forward(prompt)
    for (const last of [0, 3, 11]) {
      const control = new AbortController()
      const observe = ({ layer }: { layer: number }) => layer === last && control.abort()
      await expect(model.forward(prompt, { signal: control.signal, observe })).rejects.toThrow(/abort/)
      expect(await model.forward(prompt)).toEqual(want)
    }
  })

  it('is disposed with reads in flight', async () => {
    for (const trunk of ['stream', 'resident'] as const) {
      const model = await openModel(modelDir, { trunk, lookahead: 16, cacheSlots: 12 })
      const session = model.createSession()
      await session.append(prompt.slice(0, 1))
      const running = codeOf(session.step(3))
      await model[Symbol.asyncDispose]()
      expect(['resolved', 'ERR_K3_DISPOSED']).toContain(await running)
    }
  })

  it('is disposed in the middle of a pass, whose layer ends first', async () => {
    for (const trunk of ['stream', 'resident'] as const) {
      const model = await openModel(modelDir, { trunk, lookahead: 4, cacheSlots: 8 })
      const layers: number[] = []
      const running = codeOf(model.forward(prompt, { observe: ({ layer }) => layers.push(layer) }))
      // the first layer gives the event loop a turn
      await new Promise((resolve) => setImmediate(resolve))
      await model[Symbol.asyncDispose]()
      expect([await running, layers]).toEqual(['ERR_K3_DISPOSED', [0, 1]])
    }
  })

  it('refuses fewer slots than one token needs', async () => {
    expect(await codeOf(openModel(modelDir, { cacheSlots: 3, trunk: 'stream' }))).toBe('ERR_K3_CACHE_SLOTS')
  })
})

describe('a placement', () => {
  const sizes = { layerCount: 4, vocabSize: 100, mostHeadRows: 30 }
  it('is completed from what was asked for', () => {
    expect(choosePlacement({}, sizes)).toEqual({
      mode: 'mmap',
      pinnedLayers: [],
      ringLayers: 0,
      headRows: 100
    })
    expect(choosePlacement({ trunk: 'resident' }, sizes)).toEqual({
      mode: 'resident',
      pinnedLayers: [0, 1, 2, 3],
      ringLayers: 0,
      headRows: 100
    })
    expect(choosePlacement({ trunk: 'stream', pinnedLayers: [3, 1, 3] }, sizes)).toEqual({
      mode: 'stream',
      pinnedLayers: [1, 3],
      ringLayers: 2,
      headRows: 30
    })
  })

  it.each([
    { trunk: 'tape' as 'stream' },
    { pinnedLayers: [1] },
    { trunk: 'resident' as const, ringLayers: 2 },
    { trunk: 'stream' as const, ringLayers: 1 },
    { trunk: 'stream' as const, pinnedLayers: [4] },
    { trunk: 'stream' as const, pinnedLayers: [0.5] }
  ])('is refused: %o', (options) => {
    expect(() => choosePlacement(options, sizes)).toThrow(expect.objectContaining({ code: 'ERR_K3_OPTION' }))
  })

  it.each([-1, 17, 0.5])('refuses lookahead %d', async (lookahead) => {
    expect(await codeOf(openModel(modelDir, { lookahead }))).toBe('ERR_K3_OPTION')
  })

  it('refuses lookahead with experts of the caller', async () => {
    const parts = { experts: (builtIn: ExpertSource) => builtIn }
    expect(await codeOf(openModel(modelDir, { lookahead: 1, parts }))).toBe('ERR_K3_OPTION')
  })
})
