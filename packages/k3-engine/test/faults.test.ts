import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { expectedFile, modelDir } from '@k3/demo-model'
import { describe, expect, it } from 'vitest'
import { openCheckpoint } from '../src/checkpoint/open-checkpoint.js'
import { openModel } from '../src/open-model.js'
import { copyOfDemo, patch } from './demo-cases.js'

const failureOf = async (dir: string, request = { ids: [1, 2, 3], maxTokens: 2 }) => {
  const model = await openModel(dir)
  try {
    await model.generate(request)
  } catch (error) {
    return error as Error & { code: string; file?: string }
  } finally {
    await model[Symbol.asyncDispose]()
  }
  throw new Error('nothing failed')
}

describe('a damaged checkpoint', () => {
  it('with a NaN scale in every expert of a layer ends the request by name', async () => {
    const dir = copyOfDemo()
    const checkpoint = await openCheckpoint(dir)
    const area = checkpoint.experts(4)
    for (let expert = 0; expert < 16; expert++) {
      patch(
        path.join(dir, path.basename(checkpoint.files[area.file]!)),
        area.base(expert) + area.layout.w2Scale + 3,
        [255]
      )
    }
    const error = await failureOf(dir)
    expect(error.code).toBe('ERR_K3_EXPERT_SCALE')
    expect(error.message).toMatch(/expert \d+ of layer 4 .*w2/)
    expect(error.file).toContain('model-00002')
  })

  it('with NaN weights ends the request instead of picking a token', async () => {
    const dir = copyOfDemo()
    const checkpoint = await openCheckpoint(dir)
    const norm = checkpoint.extent('language_model.model.norm.weight')
    patch(path.join(dir, path.basename(checkpoint.files[norm.file]!)), norm.offset, [0xc0, 0x7f])
    expect((await failureOf(dir)).code).toBe('ERR_K3_LOGITS_NONFINITE')
  })

  it('with NaN in a router ends the request and names the layer', async () => {
    const dir = copyOfDemo()
    const checkpoint = await openCheckpoint(dir)
    const gate = checkpoint.extent('language_model.model.layers.3.block_sparse_moe.gate.weight')
    patch(path.join(dir, path.basename(checkpoint.files[gate.file]!)), gate.offset, [0xc0, 0x7f])
    const error = await failureOf(dir)
    expect(error.code).toBe('ERR_VECTOR_OPS_NONFINITE')
    expect(error.message).toContain('router of layer 3: token 0, expert 0')
  })

  it('that shrinks under an open model is noticed by name', async () => {
    const dir = copyOfDemo()
    const checkpoint = await openCheckpoint(dir)
    const model = await openModel(dir, { cacheSlots: 4 })
    const area = checkpoint.experts(1)
    const file = path.join(dir, path.basename(checkpoint.files[area.file]!))
    // only expert bytes go: the mapped trunk of this shard lies before them
    truncateSync(file, Math.min(...Array.from({ length: 16 }, (_, expert) => area.base(expert))))
    const work = Promise.resolve(model.generate({ ids: [1, 2, 3], maxTokens: 2 }))
    await expect(work).rejects.toMatchObject({ code: 'ERR_K3_SHARD_CHANGED', file })
    await model[Symbol.asyncDispose]()
  })

  it('that shrinks while a token is on its way fails the read by name', async () => {
    const dir = copyOfDemo()
    const checkpoint = await openCheckpoint(dir)
    await using model = await openModel(dir, { cacheSlots: 4 })
    const area = checkpoint.experts(9)
    const experts = Math.min(...Array.from({ length: 16 }, (_, expert) => area.base(expert)))
    const observe = ({ layer }: { layer: number }) =>
      layer === 0 && truncateSync(checkpoint.files[area.file]!, experts)
    await expect(model.forward([1, 2, 3], { observe })).rejects.toMatchObject({ code: 'ERR_URING_EOF' })
  })

  it('without tokenizer files takes ids and refuses text', async () => {
    const dir = copyOfDemo()
    rmSync(path.join(dir, 'tiktoken.model'))
    const model = await openModel(dir)
    expect(model.tokenizer).toBeNull()
    expect(await model.generate({ ids: [1], maxTokens: 2 })).toMatchObject({ text: '' })
    const text = Promise.resolve(model.generate({ prompt: 'Hello', maxTokens: 1 }))
    await expect(text).rejects.toMatchObject({ code: 'ERR_K3_NO_TOKENIZER' })
    await model[Symbol.asyncDispose]()
  })

  it('with another vocabulary size than its tokenizer is refused', async () => {
    const dir = copyOfDemo()
    const ranks = readFileSync(path.join(dir, 'tiktoken.model'), 'utf8').trimEnd().split('\n')
    writeFileSync(path.join(dir, 'tiktoken.model'), `${ranks.slice(0, -1).join('\n')}\n`)
    await expect(openModel(dir)).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_(K3_)?TOKENIZER/)
    })
  })
})

it('a model runs in a worker thread, and a terminated worker leaves the process alive', async () => {
  const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8'))
  const { prompt_ids: ids, output_ids: output } = cases[0]
  const source = `
    const { parentPort, workerData } = require('node:worker_threads')
    const { openModel } = require(workerData.engine)
    const run = async () => {
      const model = await openModel(workerData.dir, { threads: 2 })
      const { ids } = await model.generate({ ids: workerData.ids, maxTokens: 5 })
      parentPort.postMessage(ids)
      await model.generate({ ids: new Array(4000).fill(7), maxTokens: 1 })
    }
    run()`
  const engine = path.join(import.meta.dirname, '..', 'dist', 'index.cjs')
  const worker = new Worker(source, { eval: true, workerData: { engine, dir: modelDir, ids } })
  const first = await new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  expect(first).toEqual(output.slice(0, 5))
  expect(await worker.terminate()).toBe(1)
})
