import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { createLinear } from '../../bf16-linear/src/index.js'
import { createPool, type TaskPool, TaskPoolError } from '../src/index.js'

const rows = 67
const cols = 33
const weights = Uint16Array.from({ length: rows * cols }, (_, i) => ((i * 40503) & 0x807f) | 0x3f00)
const x = Float32Array.from({ length: cols }, (_, i) => Math.sin(i))

const apply = (pool?: Pick<TaskPool, 'handle'>) => {
  const linear = createLinear({ weights, rows, cols }, pool ? { pool } : {})
  const out = new Float32Array(rows).fill(NaN)
  return () => {
    linear.apply(x, out.fill(NaN), 1)
    return out
  }
}

// child processes run the build, which the test command makes first
const builtEntry = new URL('../dist/index.js', import.meta.url).href

const runNode = (program: string) => {
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: 20_000
  })
  return { status: child.status, signal: child.signal, stdout: child.stdout, stderr: child.stderr }
}

describe('createPool', () => {
  it.each([1, 2, 3, 4])('runs every part of an op exactly once on %i threads', (threads) => {
    const want = apply()().slice()
    const pool = createPool({ threads })
    expect(pool.threads).toBe(threads)
    const run = apply(pool)
    for (let i = 0; i < 500; i++) expect(run()).toEqual(want)
    pool.close()
  })

  it('gives the same result when idle threads sleep at once', () => {
    using pool = createPool({ threads: 3, spinMicros: 0 })
    const run = apply(pool)
    const want = apply()().slice()
    for (let i = 0; i < 500; i++) expect(run()).toEqual(want)
  })

  it.each([0, -1, 1.5, 1025, Number.NaN, '2', undefined])('refuses %s threads', (threads) => {
    const create = () => createPool({ threads: threads as number })
    expect(create).toThrow(RangeError)
    expect(create).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }))
  })

  it.each([-1, 0.5, 1_000_001])('refuses a spin of %s µs', (spinMicros) => {
    expect(() => createPool({ threads: 1, spinMicros })).toThrow(/spinMicros/)
  })
})

describe('TaskPool.close', () => {
  it('makes a later op throw by name and leaves its output alone', () => {
    const pool = createPool({ threads: 2 })
    const linear = createLinear({ weights, rows, cols }, { pool })
    const out = new Float32Array(rows).fill(7)
    pool.close()
    expect(() => linear.apply(x, out, 1)).toThrow(expect.objectContaining({ code: 'ERR_TASK_POOL_CLOSED' }))
    expect(out).toEqual(new Float32Array(rows).fill(7))
  })

  it('does nothing the second time', () => {
    const pool = createPool({ threads: 2 })
    pool.close()
    pool.close()
    pool[Symbol.dispose]()
  })

  it('ends the threads', () => {
    const threadsNow = () => Number(/Threads:\s+(\d+)/.exec(readStatus())![1])
    const before = threadsNow()
    const pool = createPool({ threads: 9 })
    expect(threadsNow()).toBe(before + 8)
    pool.close()
    expect(threadsNow()).toBe(before)
  })
})

const readStatus = () => execFileSync('cat', [`/proc/${process.pid}/status`], { encoding: 'utf8' })

describe('pool handle', () => {
  it.each([
    ['an object', {}],
    ['a number', 1],
    ['null', null]
  ])('is refused by an op when it is %s', (_, handle) => {
    const create = () => createLinear({ weights, rows, cols }, { pool: { handle: handle as object } })
    expect(create).toThrow(TypeError)
    expect(create).toThrow(expect.objectContaining({ code: 'ERR_INVALID_HANDLE' }))
  })

  it('is refused when another addon made it', () => {
    const linear = createLinear({ weights, rows, cols })
    expect(() => createLinear({ weights, rows, cols }, { pool: linear })).toThrow(TypeError)
  })
})

describe('a process', () => {
  it.each([0, 1_000_000])('exits cleanly while threads idle with a spin of %i µs', (spinMicros) => {
    const program = `
      import { createPool } from ${JSON.stringify(builtEntry)}
      createPool({ threads: 4, spinMicros: ${spinMicros} })
      setTimeout(() => process.exit(3), 50)`
    expect(runNode(program)).toEqual({ status: 3, signal: null, stdout: '', stderr: '' })
  })

  it('ends when only an open pool is left', () => {
    const program = `
      import { createPool } from ${JSON.stringify(builtEntry)}
      createPool({ threads: 4 })`
    expect(runNode(program)).toEqual({ status: 0, signal: null, stdout: '', stderr: '' })
  })

  it('runs a pool in a worker thread that ends, or is terminated, with the pool open', () => {
    const bf16 = fileURLToPath(new URL('../../bf16-linear/dist/index.cjs', import.meta.url))
    const inWorker = `
      const { createPool } = require(${JSON.stringify(fileURLToPath(new URL('../dist/index.cjs', import.meta.url)))})
      const { createLinear } = require(${JSON.stringify(bf16)})
      const { parentPort, workerData } = require('node:worker_threads')
      const pool = createPool({ threads: 3 })
      const linear = createLinear({ weights: new Uint16Array(16).fill(0x3f80), rows: 4, cols: 4 }, { pool })
      const out = new Float32Array(4)
      linear.apply(new Float32Array(4).fill(1), out, 1)
      parentPort.postMessage(out.join())
      if (workerData) for (;;) linear.apply(new Float32Array(4).fill(1), out, 1)`
    const program = `
      import { once } from 'node:events'
      import { Worker } from 'node:worker_threads'
      for (const workerData of [false, true, false, true]) {
        const worker = new Worker(${JSON.stringify(inWorker)}, { eval: true, execArgv: [], workerData })
        const exited = once(worker, 'exit')
        console.log((await once(worker, 'message'))[0])
        if (workerData) await worker.terminate()
        await exited
      }`
    expect(runNode(program)).toEqual({
      status: 0,
      signal: null,
      stdout: '4,4,4,4\n'.repeat(4),
      stderr: ''
    })
  })

  it('uses no CPU while its pool is idle', () => {
    const program = `
      import { createPool } from ${JSON.stringify(builtEntry)}
      createPool({ threads: 4 })
      setTimeout(() => {
        const before = process.cpuUsage()
        setTimeout(() => {
          const { user, system } = process.cpuUsage(before)
          console.log(user + system < 100_000 ? 'idle' : user + system)
        }, 400)
      }, 100)`
    expect(runNode(program).stdout).toBe('idle\n')
  })

  const prlimit = spawnSync('prlimit', ['--version']).status === 0
  it.skipIf(!prlimit)(
    'gets a named error, and no thread, when the system refuses one (needs prlimit)',
    () => {
      const program = `
      import { execFileSync } from 'node:child_process'
      import { readFileSync } from 'node:fs'
      import { createPool, TaskPoolError } from ${JSON.stringify(builtEntry)}
      createPool({ threads: 1 }).close()
      const status = () => readFileSync('/proc/self/status', 'utf8')
      const before = /Threads:.*/.exec(status())[0]
      const spare = Number(/VmSize:\\s+(\\d+)/.exec(status())[1]) * 1024 + 2 ** 28
      execFileSync('prlimit', ['--pid', String(process.pid), '--as=' + spare])
      try {
        createPool({ threads: 1024 })
      } catch (error) {
        console.log(error instanceof TaskPoolError, error.code, error.threads, before === /Threads:.*/.exec(status())[0])
      }`
      expect(runNode(program)).toMatchObject({ status: 0, stdout: 'true ERR_TASK_POOL_THREADS 1024 true\n' })
    }
  )
})

it('TaskPoolError says what was asked for', () => {
  const error = new TaskPoolError(64, 11)
  expect(error).toMatchObject({ name: 'TaskPoolError', code: 'ERR_TASK_POOL_THREADS', threads: 64 })
  expect(error.message).toContain('64')
})
