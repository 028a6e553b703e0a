import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, truncateSync } from 'node:fs'
import path from 'node:path'
import { modelDir } from '@k3/demo-model'
import { describe, expect, it } from 'vitest'
import { openCheckpoint } from '../src/checkpoint/open-checkpoint.js'
import { openModel } from '../src/open-model.js'
import { codeOf, copyOfDemo, demoCase, patch, temporaryFolder } from './demo-cases.js'

const { prompt, output } = demoCase('raw-01')

const shardsOf = async (dir: string) => (await openCheckpoint(dir)).files.map((file) => path.basename(file))

/** A folder with some shards of another. */
const mirrorOf = async (dir: string, isWanted: (index: number) => boolean): Promise<string> => {
  const mirror = path.join(temporaryFolder(), 'mirror')
  mkdirSync(mirror)
  for (const [i, name] of (await shardsOf(dir)).entries())
    if (isWanted(i)) copyFileSync(path.join(dir, name), path.join(mirror, name))
  return mirror
}

describe('a checkpoint in several folders', () => {
  it.each(['mmap', 'stream'] as const)(
    'gives the same tokens, whichever drive reads, trunk %s',
    async (trunk) => {
      const dir = copyOfDemo()
      const names = await shardsOf(dir)
      expect(names.length).toBeGreaterThan(1)
      const whole = await mirrorOf(dir, () => true)
      const half = await mirrorOf(dir, (i) => i % 2 === 0)
      // the second folder alone has the last shard
      renameSync(path.join(dir, names.at(-1)!), path.join(dir, 'elsewhere'))
      for (const backend of ['io_uring', 'pread'] as const) {
        await using model = await openModel(dir, { also: [whole, half, dir], trunk, backend, cacheSlots: 4 })
        expect((await model.generate({ ids: prompt, maxTokens: 8 })).ids).toEqual(output.slice(0, 8))
        const { drives } = model.traffic
        expect(drives.map(({ folder }) => folder)).toEqual([dir, whole, half])
        expect(drives[1]!.bytesRead).toBeGreaterThan(0)
      }
    }
  )

  it('is refused when a shard is in none of them', async () => {
    const dir = copyOfDemo()
    const mirror = await mirrorOf(dir, (i) => i === 0)
    renameSync(path.join(dir, (await shardsOf(dir)).at(-1)!), path.join(dir, 'elsewhere'))
    expect(await codeOf(openModel(dir, { also: [mirror] }))).toBe('ERR_SAFETENSORS_SHARD_MISSING')
  })

  it('is refused when a copy has another size, another header or other data', async () => {
    const dir = copyOfDemo()
    for (const damage of [
      (file: string) => truncateSync(file, readFileSync(file).length - 1),
      (file: string) => patch(file, 30, [readFileSync(file)[30]! ^ 1]),
      (file: string) => patch(file, readFileSync(file).length - 1, [readFileSync(file).at(-1)! ^ 1])
    ]) {
      const mirror = await mirrorOf(dir, () => true)
      const file = path.join(mirror, (await shardsOf(dir))[0]!)
      damage(file)
      const error = await openModel(dir, { also: [mirror] }).then(undefined, (cause: unknown) => cause)
      expect(error).toMatchObject({ code: 'ERR_K3_SHARD_COPY', file })
    }
  })

  // nobody writes to the pipe: if it were waited for, the test would run into its time limit
  it.each([
    ['a pipe', (file: string) => execFileSync('mkfifo', [file])],
    ['a folder', (file: string) => mkdirSync(file)]
  ])('is refused when a copy is %s', async (_, make) => {
    const dir = copyOfDemo()
    const mirror = await mirrorOf(dir, () => true)
    const file = path.join(mirror, (await shardsOf(dir))[0]!)
    rmSync(file)
    make(file)
    const error = await openModel(dir, { also: [mirror] }).then(undefined, (cause: unknown) => cause)
    expect(error).toMatchObject({
      code: 'ERR_K3_SHARD_COPY',
      file,
      message: expect.stringContaining('no regular file')
    })
  })

  it('is refused when a folder has none of its shards', async () => {
    const dir = copyOfDemo()
    const mirror = await mirrorOf(dir, () => false)
    const error = await openModel(dir, { also: [mirror] }).then(undefined, (cause: unknown) => cause)
    expect(error).toMatchObject({ code: 'ERR_K3_SHARD_COPY', file: mirror })
  })

  it('is refused when the folders are no list of paths', async () => {
    for (const also of [modelDir, [7], null])
      expect(await codeOf(openModel(modelDir, { also: also as unknown as string[] }))).toBe('ERR_K3_OPTION')
  })
})
