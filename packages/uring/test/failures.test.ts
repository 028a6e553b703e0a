import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { allocRegion } from '../src/index.js'
import { builtEntry, modesFor, patternFile, runNode, scratchFolder, withReader } from './scratch.js'

const { file, content } = patternFile(scratchFolder(), 'file', 100_000)
const unreadable = '/proc/self/mem' // a regular file whose first page is mapped by nobody: reading it is EIO

describe.each(modesFor(unreadable))('a failing device under $backend', ({ backend }) => {
  it('fails its own read, by name, and no other of the batch', async () => {
    await withReader([unreadable, file], { backend }, async (reader) => {
      using region = allocRegion(2 ** 20)
      const batch = reader.submit([
        { file: 1, offset: 0, length: content.length, region, at: 0 },
        { file: 0, offset: 8, length: 10, region, at: 2 ** 19 }
      ])
      batch.wait(0)
      expect(Buffer.compare(region.view(0, content.length), content)).toBe(0)
      const fault = { code: 'ERR_URING_READ', file: unreadable, offset: 8, needBytes: 10 }
      expect(() => batch.wait(1)).toThrow(expect.objectContaining(fault))
      expect(() => batch.wait(1)).toThrow(/EIO at offset 8, within 10 bytes from offset 8/)
      await expect(batch.done).rejects.toMatchObject(fault)
    })
  })
})

const prlimit = spawnSync('prlimit', ['--version']).status === 0

describe.skipIf(!prlimit)('a process at its limits (needs prlimit)', () => {
  const report = (limit: string, attempt: string) => {
    const program = `
      import { execFileSync } from 'node:child_process'
      import { readdirSync, readFileSync } from 'node:fs'
      import { backendInfo, openReader } from ${JSON.stringify(builtEntry)}
      backendInfo()
      const file = ${JSON.stringify(file)}
      const virtualBytes = Number(/VmSize:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) * 1024
      const descriptors = readdirSync('/proc/self/fd').length
      // no pipes: Node.js itself would have to find memory for what comes through them
      execFileSync('prlimit', ['--pid', String(process.pid), ${limit}], { stdio: 'ignore' })
      try {
        ${attempt}
        console.log('no error')
      } catch ({ code, message, file }) {
        console.log(JSON.stringify({ code, message, file }))
      }
      process.exit(0)`
    const { status, stdout, stderr } = runNode(program)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    return JSON.parse(stdout)
  }

  it('is told when threads are refused', () => {
    const attempt = `for (const readers = []; ; ) readers.push(openReader([file], { backend: 'pread', depth: 256 }))`
    expect(report(`'--as=' + (virtualBytes + 2 ** 27)`, attempt)).toMatchObject({
      code: 'ERR_URING_RESOURCES',
      message: expect.stringMatching(/pthread_create: EAGAIN/)
    })
  })

  it('is told when descriptors run out, before or after the file is open', () => {
    const attempt = `for (const readers = []; ; ) readers.push(openReader([file], { backend: 'pread', depth: 1, direct: 'off' }))`
    const outcomes = [8, 9, 10, 11].map((spare) => report(`'--nofile=' + (descriptors + ${spare})`, attempt))
    for (const { code, message } of outcomes) {
      expect(code).toBe('ERR_URING_RESOURCES')
      expect(message).toMatch(/EMFILE/)
    }
  })
})
