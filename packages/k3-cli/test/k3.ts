import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'
import { runCommandLine } from '../src/run-command-line.js'
import type { Terminal } from '../src/terminal.js'

/** A stream that keeps what is written to it. */
export class Sink extends Writable {
  readonly isTTY: boolean
  readonly columns = 80
  readonly #chunks: Buffer[] = []

  constructor(isTTY = false) {
    super()
    this.isTTY = isTTY
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk)
    done()
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }

  get text(): string {
    return this.bytes.toString()
  }
}

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  readonly bytes: Buffer
}

interface Surroundings {
  readonly stdin?: string | Uint8Array
  readonly isTTY?: boolean
  readonly noColor?: boolean
}

/** Runs `k3 …args` inside this process. */
export const k3 = async (args: readonly string[], surroundings: Surroundings = {}): Promise<Outcome> => {
  const { stdin = '', isTTY = false, noColor = false } = surroundings
  const [stdout, stderr] = [new Sink(), new Sink(isTTY)]
  const input = Readable.from([Buffer.from(stdin)])
  const terminal: Terminal = { stdin: input, stdout, stderr, noColor, isDumb: false, exitCode: 0 }
  const code = await runCommandLine(args, terminal)
  return { code, stdout: stdout.text, stderr: stderr.text, bytes: stdout.bytes }
}

/** The object `k3 …args` prints. */
export const k3Object = async (args: readonly string[], stdin: string | Uint8Array = '') => {
  const { stdout } = await k3(args, { stdin })
  return JSON.parse(stdout) as Record<string, unknown>
}

/** The objects `k3 …args --jsonl` prints for a list of lines. */
export const k3Lines = async (args: readonly string[], lines: readonly string[]) => {
  const { code, stdout, stderr } = await k3([...args, '--jsonl'], { stdin: `${lines.join('\n')}\n` })
  if (code !== 0) throw new Error(stderr)
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** Starts the built program as a process of its own; every one is killed after a minute. */
export const startK3 = (args: readonly string[], environment: Record<string, string> = {}) => {
  const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
  return spawn(process.execPath, [main, ...args], {
    env: { ...process.env, ...environment },
    timeout: 60_000,
    killSignal: 'SIGKILL'
  })
}

const folders: string[] = []

/** An empty folder that goes away after the tests of the file. */
export const scratchFolder = (): string => {
  const dir = mkdtempSync(path.join(tmpdir(), 'k3-cli-'))
  folders.push(dir)
  return dir
}

afterAll(() => {
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true, force: true })
})

/** Absolute path of something in fixtures/. */
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../fixtures/${name}`, import.meta.url))
