import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { WholeFile } from '../src/whole-file.js'
import { scratchFolder } from './k3.js'

test('a file that two write at once is whole, of the last one', () => {
  const dir = scratchFolder()
  const file = path.join(dir, 'out')
  {
    using first = new WholeFile(file)
    using second = new WholeFile(file)
    first.write('the longer of two contents')
    second.write('short')
  }
  expect(readFileSync(file, 'utf8')).toBe('short')
  expect(readdirSync(dir)).toEqual(['out'])
})

test('a pipe that nobody reads is refused instead of waited for', () => {
  const pipe = path.join(scratchFolder(), 'pipe')
  execFileSync('mkfifo', [pipe])
  expect(() => new WholeFile(pipe)).toThrow(
    expect.objectContaining({
      code: 'ERR_OUTPUT_WRITE',
      file: pipe,
      cause: expect.objectContaining({ code: 'ENXIO' })
    })
  )
})
