import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Check } from './check.js'
import type { ExpectedRun } from './expected-file.js'

/** Holds size and SHA-256 of every file of a checkpoint folder against the expectation. */
export const checkFiles = async (dir: string, { name, files }: ExpectedRun): Promise<Check> => {
  const present = new Set(await readdir(dir))
  const wrong: string[] = []
  for (const [file, { bytes, sha256 }] of Object.entries(files)) {
    if (!present.has(file)) {
      wrong.push(`${file} is missing`)
      continue
    }
    const hash = createHash('sha256')
    const source = createReadStream(path.join(dir, file), { highWaterMark: 1 << 20 })
    await pipeline(source, hash)
    if (source.bytesRead !== bytes) wrong.push(`${file} has ${source.bytesRead} bytes, expected ${bytes}`)
    else if (hash.digest('hex') !== sha256) wrong.push(`${file} has another SHA-256`)
  }
  const count = Object.keys(files).length
  const ok = wrong.length === 0
  return { name: `${name} files`, ok, detail: ok ? `${count} files, SHA-256 equal` : wrong.join('; ') }
}
