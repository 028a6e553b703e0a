import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { beforeAll, describe, expect, test } from 'vitest'
import { k3, scratchFolder } from './k3.js'

// A pipe nobody writes to would be waited for: the test would run into its time limit.
describe('a pipe in place of a file', () => {
  const dir = scratchFolder()
  const pipe = path.join(dir, 'pipe')
  const folderWith = (name: string): string => {
    const folder = mkdtempSync(path.join(dir, 'model-'))
    cpSync(modelDir, folder, { recursive: true })
    rmSync(path.join(folder, name))
    execFileSync('mkfifo', [path.join(folder, name)])
    return folder
  }
  beforeAll(() => {
    execFileSync('mkfifo', [pipe])
  })

  test.each([
    ['inspect --config', () => ['inspect', '--config', pipe], 3],
    ['inspect --file', () => ['inspect', '--file', pipe], 3],
    ['generate --prompt-file', () => ['generate', '--prompt-file', pipe], 2],
    ['tokens', () => ['tokens', pipe], 2],
    ['tokens --jsonl', () => ['tokens', '--jsonl', pipe], 2],
    ['render', () => ['render', pipe], 2],
    ['parse', () => ['parse', pipe], 2],
    ['self-test --expected', () => ['self-test', '--model', modelDir, '--expected', pipe], 2],
    ['config.json, inspected', () => ['inspect', '--model', folderWith('config.json')], 3],
    ['config.json, opened', () => ['generate', 'hi', '--model', folderWith('config.json')], 3],
    ['tiktoken.model', () => ['generate', 'hi', '--model', folderWith('tiktoken.model')], 3],
    ['tokenizer_config.json', () => ['tokens', '--tokenizer', folderWith('tokenizer_config.json')], 3]
  ])('is refused for %s', async (_, args, code) => {
    const outcome = await k3(args())
    expect([outcome.code, outcome.stdout]).toEqual([code, ''])
    expect(outcome.stderr).toMatch(/regular file/)
  })
})
