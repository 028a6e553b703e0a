import { describe, expect, it, vi } from 'vitest'
import { allocRegion, openReader } from '../src/index.js'
import {
  builtCommonJs,
  builtEntry,
  modesFor,
  patternFile,
  runNode,
  scratchFolder,
  withReader
} from './scratch.js'

vi.setConfig({ testTimeout: 60_000 }) // a shared disk can be slow

const folder = scratchFolder()
const { file, content } = patternFile(folder, 'file', 2 * 2 ** 20 + 5)
const modes = modesFor(file)

const wholeFile = { file: 0, offset: 0, length: content.length }
const bytes = 2 * 2 ** 20 + 4096

describe.each(modes)('with $backend, direct $direct', (options) => {
  it('close() waits for the reads in flight, whose results stay to be had', async () => {
    const reader = openReader([file], { ...options, depth: 2 })
    using region = allocRegion(4 * bytes)
    const batches = [0, 1, 2, 3].map((i) => reader.submit([{ ...wholeFile, region, at: i * bytes }]))
    const closing = reader.close()
    expect(reader.close()).toBe(closing)
    await closing
    for (const batch of batches) {
      batch.wait(0)
      await batch.done
    }
    for (let i = 0; i < 4; i++)
      expect(Buffer.compare(region.view(i * bytes, content.length), content)).toBe(0)
    expect(() => reader.submit([{ ...wholeFile, region, at: 0 }])).toThrow(
      expect.objectContaining({ code: 'ERR_URING_CLOSED' })
    )
    expect(() => reader.info).toThrow(expect.objectContaining({ code: 'ERR_URING_CLOSED' }))
  })

  it('a region closed while reads fill it stays mapped until they are over', async () => {
    await withReader([file], { ...options, depth: 1 }, async (reader) => {
      const region = allocRegion(bytes)
      const view = region.view(0, content.length)
      const batch = reader.submit([{ ...wholeFile, region, at: 0 }])
      region.close()
      await batch.done
      expect(Buffer.compare(view, content)).toBe(0)
      const unseen = allocRegion(bytes)
      const last = reader.submit([{ ...wholeFile, region: unseen, at: 0 }])
      unseen.close()
      last.wait(0)
    })
  })

  it('done settles for batches that end in any order, and again when asked for late', async () => {
    await withReader([file], options, async (reader) => {
      using region = allocRegion(2 * bytes)
      const large = reader.submit([{ ...wholeFile, region, at: 0 }])
      const small = reader.submit([{ ...wholeFile, length: 1, region, at: bytes }])
      const order: string[] = []
      await Promise.all([
        large.done.then(() => order.push('large')),
        small.done.then(() => order.push('small'))
      ])
      expect(order.sort()).toEqual(['large', 'small'])
      const late = reader.submit([{ ...wholeFile, length: 1, region, at: 0 }])
      late.wait(0)
      await late.done
      expect(late.done).toBe(late.done)
    })
  })
})

// child processes run dist/, which the test command builds first
const opening = (options: (typeof modes)[number]) => `
    const reader = openReader([${JSON.stringify(file)}], { ...${JSON.stringify(options)}, depth: 2 })
    const region = allocRegion(${32 * bytes})
    const start = () => reader.submit(Array.from({ length: 32 }, (_, i) =>
      ({ file: 0, offset: 0, length: ${content.length}, region, at: i * ${bytes} })))`

const clean = { signal: null, stderr: '' }

describe.each(modes)('a process with $backend, direct $direct', (options) => {
  const program = (body: string) => `
    import { allocRegion, openReader } from ${JSON.stringify(builtEntry)}
    ${opening(options)}
    ${body}`

  it('may exit with reads in flight', () => {
    expect(runNode(program('start(); process.exit(3)'))).toEqual({ ...clean, status: 3, stdout: '' })
  })

  it('may exit with reads in flight from a beforeExit or exit listener', () => {
    const body = `process.on('exit', () => start()); start().done.catch(() => {}); setImmediate(() => process.exit(0))`
    expect(runNode(program(body))).toEqual({ ...clean, status: 0, stdout: '' })
  })

  it('ends by itself when reads nobody waits for, and an open reader, are all that is left', () => {
    expect(runNode(program('start()'))).toEqual({ ...clean, status: 0, stdout: '' })
  })

  it('stays alive for a batch somebody waits for', () => {
    const body = `start().done.then(() => console.log('done'))`
    expect(runNode(program(body))).toEqual({ ...clean, status: 0, stdout: 'done\n' })
  })

  it('ends after await using', () => {
    const body = `
      await (async () => {
        const late = start()
        await reader[Symbol.asyncDispose]()
        await late.done
        region.close()
        console.log('closed')
      })()`
    expect(runNode(program(body))).toEqual({ ...clean, status: 0, stdout: 'closed\n' })
  })

  it('collects readers, batches and regions that were dropped with reads in flight', () => {
    const body = `
      for (let i = 0; i < 20; i++) {
        const dropped = openReader([${JSON.stringify(file)}], { ...${JSON.stringify(options)}, depth: 2 })
        dropped.submit([{ file: 0, offset: 0, length: ${content.length}, region: allocRegion(${bytes}), at: 0 }])
        if (i % 5 === 0) { globalThis.gc(); await new Promise(setImmediate) }
      }
      for (let i = 0; i < 3; i++) { globalThis.gc(); await new Promise(setImmediate) }
      console.log('alive')`
    expect(runNode(program(body), [], ['--expose-gc'])).toEqual({ ...clean, status: 0, stdout: 'alive\n' })
  })
})

describe.each(modes)('worker threads with $backend, direct $direct', (options) => {
  it('may finish, exit or be terminated with reads in flight', () => {
    const inWorker = `
      const { allocRegion, openReader } = require(${JSON.stringify(builtCommonJs)})
      const { parentPort, workerData } = require('node:worker_threads')
      ${opening(options)}
      const batch = start()
      if (workerData === 'await') batch.done.then(() => reader.close()).then(() => parentPort.postMessage('read'))
      else parentPort.postMessage('started')
      if (workerData === 'block') for (let next = batch; ; next = start()) for (let i = 0; i < 32; i++) next.wait(i)
      if (workerData === 'exit') process.exit(0)
      if (workerData === 'loop') batch.done.then(() => setInterval(() => {}, 1000))`
    const body = `
      import { once } from 'node:events'
      import { Worker } from 'node:worker_threads'
      for (const workerData of ['await', 'drop', 'block', 'exit', 'loop', 'block', 'block', 'await']) {
        const worker = new Worker(${JSON.stringify(inWorker)}, { eval: true, execArgv: [], workerData })
        const exited = once(worker, 'exit')
        console.log((await once(worker, 'message'))[0])
        if (workerData === 'block' || workerData === 'loop') await worker.terminate()
        await exited
      }`
    expect(runNode(body)).toEqual({
      ...clean,
      status: 0,
      stdout: `read\n${'started\n'.repeat(6)}read\n`
    })
  })
})
