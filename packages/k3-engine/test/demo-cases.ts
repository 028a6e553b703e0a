import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expectedFile, modelDir } from '@k3/demo-model'
import { afterAll } from 'vitest'

interface Case {
  readonly name: string
  readonly prompt_ids: number[]
  readonly output_ids: number[]
}

const { cases } = JSON.parse(readFileSync(expectedFile, 'utf8')) as { cases: Case[] }

/** A prompt of the demo model and what it generates, greedily. */
export const demoCase = (name: string): { prompt: number[]; output: number[] } => {
  const { prompt_ids: prompt, output_ids: output } = cases.find((other) => other.name === name)!
  return { prompt, output }
}

const folders: string[] = []
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

/** A folder that is removed when the test file has run. */
export const temporaryFolder = (): string => {
  const dir = mkdtempSync(path.join(tmpdir(), 'k3-engine-'))
  folders.push(dir)
  return dir
}

/** A copy of the demo model that may be damaged. */
export const copyOfDemo = (): string => {
  const dir = temporaryFolder()
  cpSync(modelDir, dir, { recursive: true })
  return dir
}

export const patch = (file: string, offset: number, bytes: readonly number[]): void => {
  const content = readFileSync(file)
  content.set(bytes, offset)
  writeFileSync(file, content)
}

export const codeOf = async (work: PromiseLike<unknown>): Promise<string | undefined> =>
  work.then(
    () => 'resolved',
    (error: { code?: string }) => error.code
  )
