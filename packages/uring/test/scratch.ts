import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'
import { backendInfo, openReader, type Reader } from '../src/index.js'

/** A folder of this test file, removed after it. */
export const scratchFolder = (parent = tmpdir()): string => {
  const folder = mkdtempSync(path.join(parent, 'k3-uring-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Bytes that differ at every offset a test could confuse: a multiplicative hash of the word's index. */
export const pattern = (bytes: number, seed = 0): Uint8Array => {
  const words = new Uint32Array(Math.ceil(bytes / 4))
  for (let i = 0; i < words.length; i++)
    words[i] = Math.imul(i + seed, 0x9e3779b1) ^ Math.imul(i >>> 7, 0x85ebca6b)
  return new Uint8Array(words.buffer, 0, bytes)
}

export const patternFile = (folder: string, name: string, bytes: number, seed = 0) => {
  const file = path.join(folder, name)
  const content = pattern(bytes, seed)
  writeFileSync(file, content)
  return { file, content }
}

type Mode = { backend: 'io_uring' | 'pread'; direct: 'on' | 'off' }

/** Every backend × page cache or not that this machine has for a file; what it lacks is said in the test's name list. */
export const modesFor = (file: string): Mode[] => {
  const info = backendInfo([file])
  const backends = info.backend === 'io_uring' ? (['io_uring', 'pread'] as const) : (['pread'] as const)
  const directs = info.files[0]!.direct ? (['on', 'off'] as const) : (['off'] as const)
  return backends.flatMap((backend) => directs.map((direct) => ({ backend, direct })))
}

export const withReader = async (
  paths: Parameters<typeof openReader>[0],
  options: Parameters<typeof openReader>[1],
  use: (reader: Reader) => void | Promise<void>
) => {
  const reader = openReader(paths, options)
  try {
    await use(reader)
  } finally {
    await reader.close()
  }
}

export const builtEntry = new URL('../dist/index.js', import.meta.url).href
export const builtCommonJs = fileURLToPath(new URL('../dist/index.cjs', import.meta.url))

/** Runs an ES module program in a Node of its own, with flags of its own, under `launcher` if given. */
export const runNode = (program: string, launcher: string[] = [], flags: string[] = []) => {
  const [command, ...args] = [...launcher, process.execPath, ...flags, '--input-type=module', '-e', program]
  const { status, signal, stdout, stderr } = spawnSync(command!, args, { encoding: 'utf8', timeout: 30_000 })
  return { status, signal, stdout, stderr }
}
