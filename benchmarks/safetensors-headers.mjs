// Headers and index of the full model: 96 headers, 497,220 records, 75.8 MB, and an index of 59.8 MB.
// Run `npx tsup` in packages/safetensors first, then: node benchmarks/safetensors-headers.mjs
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openSharded, parseHeader } from '../packages/safetensors/dist/index.js'
import { fullSizeIndex, fullSizeShards, headerOf, schema } from '../packages/safetensors/test/full-size.mjs'

const INDEX = 'model.safetensors.index.json'

const measurements = {
  /** The budget of this package: 1.5 s and 600 MB. */
  async parse(dir) {
    const files = readdirSync(dir).filter((name) => name.endsWith('.safetensors'))
    const headers = files.map((name) => readFileSync(join(dir, name)))
    return measure(() => headers.map((header) => parseHeader(header, { fileBytes: 'implied' })))
  },
  async open(dir) {
    rmSync(join(dir, INDEX))
    return measure(() => openSharded(dir, { headersOnly: true }))
  },
  async 'open with index'(dir) {
    return measure(() => openSharded(dir, { headersOnly: true }))
  },
  async 'open with index, look up every name'(dir) {
    const checkpoint = await openSharded(dir, { headersOnly: true })
    const names = [...checkpoint.names()]
    return measure(() => names.reduce((sum, name) => sum + checkpoint.get(name).byteLength, 0))
  }
}

async function measure(action) {
  const cpu = process.cpuUsage()
  const start = performance.now()
  const result = await action()
  const wallMs = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  const peakBytes = process.resourceUsage().maxRSS * 1024
  return { wallMs, cpuMs: (user + system) / 1000, peakBytes, kept: result !== undefined }
}

function report(name) {
  const dir = mkdtempSync(join(tmpdir(), 'safetensors-headers-'))
  try {
    const shards = fullSizeShards()
    for (const [i, shard] of shards.entries())
      writeFileSync(join(dir, schema.shards[i].file), headerOf(shard))
    writeFileSync(join(dir, INDEX), fullSizeIndex(shards))
    // a process of its own: compiled from cold, and its peak memory is that of the reader alone
    const child = spawnSync(process.execPath, [fileURLToPath(import.meta.url), name, dir], {
      encoding: 'utf8'
    })
    if (child.status !== 0) throw new Error(child.stderr)
    const { wallMs, cpuMs, peakBytes } = JSON.parse(child.stdout)
    const figures = [
      `${Math.round(wallMs)} ms`,
      `${Math.round(cpuMs)} ms of CPU`,
      `peak ${Math.round(peakBytes / 1e6)} MB`
    ]
    process.stdout.write(`${name.padEnd(38)} ${figures.join(', ')}\n`)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

const [, , name, dir] = process.argv
if (name === undefined) for (const measurement of Object.keys(measurements)) report(measurement)
else process.stdout.write(JSON.stringify(await measurements[name](dir)))
