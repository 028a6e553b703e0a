// Expert-sized batches through every backend: GB/s, CPU, and time to the first expert. Every byte is verified once.
//   node benchmarks/uring.mjs [folder] [GB of the file]
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { allocRegion, backendInfo, openReader, paddedBytes } from '../packages/uring/dist/index.js'

const expertBytes = 17_547_264 // one expert of the released shards, a contiguous run that starts at 16 modulo 64
const topK = 16
const repeats = 3
const [parent = tmpdir(), gigabytes = '4'] = process.argv.slice(2)
const folder = mkdtempSync(path.join(parent, 'k3-uring-bench-'))
const file = path.join(folder, 'experts')
const experts = Math.floor((Number(gigabytes) * 1e9) / expertBytes)

const content = (index) => new Uint32Array(expertBytes / 4).fill(Math.imul(index + 1, 0x9e3779b1))

const write = () => {
  const descriptor = openSync(file, 'w')
  writeSync(descriptor, new Uint8Array(16))
  for (let i = 0; i < experts; i++) writeSync(descriptor, content(i))
  fsyncSync(descriptor)
  closeSync(descriptor)
}

const span = paddedBytes(16, expertBytes)
const slots = allocRegion(topK * span)

// Experts of a batch lie apart, as routed ones do: every experts/topK-th, shifted by the round.
const batchOf = (round) =>
  Array.from({ length: topK }, (_, i) => {
    const index = (Math.floor((i * experts) / topK) + round * 7) % experts
    return {
      index,
      file: 0,
      offset: 16 + index * expertBytes,
      length: expertBytes,
      region: slots,
      at: i * span
    }
  })

const verify = (reads) => {
  for (const { index, at, offset } of reads) {
    const got = Buffer.from(slots.view(at + (offset % 4096), expertBytes))
    const want = content(index)
    if (!got.equals(Buffer.from(want.buffer))) throw new Error(`expert ${index} is wrong`)
  }
}

const measure = async (options) => {
  const reader = openReader([file], options)
  for (let i = 0; i < 2; i++) {
    const reads = batchOf(i)
    await reader.submit(reads).done
    verify(reads)
  }
  const rows = []
  for (let repeat = 0; repeat < repeats; repeat++) {
    const rounds = Math.max(4, Math.floor(experts / topK))
    const cpu = process.cpuUsage()
    const start = process.hrtime.bigint()
    let first = 0
    for (let round = 0; round < rounds; round++) {
      const began = process.hrtime.bigint()
      const reads = batchOf(round)
      const batch = reader.submit(reads)
      const inFileOrder = reads.map((_, i) => i).sort((a, b) => reads[a].offset - reads[b].offset)
      batch.wait(inFileOrder[0])
      first += Number(process.hrtime.bigint() - began)
      for (const i of inFileOrder) batch.wait(i)
    }
    const nanos = Number(process.hrtime.bigint() - start)
    const { user, system } = process.cpuUsage(cpu)
    rows.push({
      gbps: (rounds * topK * expertBytes) / nanos,
      cpu: ((user + system) * 1e5) / nanos,
      firstMs: first / rounds / 1e6
    })
  }
  const info = reader.info
  await reader.close()
  rows.sort((a, b) => a.gbps - b.gbps)
  return { ...rows[repeats >> 1], info }
}

try {
  write()
  console.log(JSON.stringify(backendInfo([file])))
  for (const options of [
    { backend: 'io_uring', direct: 'on', depth: 4 },
    { backend: 'io_uring', direct: 'on', depth: 8 },
    { backend: 'io_uring', direct: 'on' },
    { backend: 'io_uring', direct: 'on', depth: 64 },
    { backend: 'pread', direct: 'on', depth: 4 },
    { backend: 'pread', direct: 'on' },
    { backend: 'io_uring', direct: 'off' },
    { backend: 'pread', direct: 'off' }
  ]) {
    const { gbps, cpu, firstMs, info } = await measure(options)
    const pinned = info.registeredBytes > 0 ? ', registered' : ''
    console.log(
      `${JSON.stringify(options)}${pinned}: ${gbps.toFixed(2)} GB/s, ${cpu.toFixed(1)} % of a core, ` +
        `first expert after ${firstMs.toFixed(1)} ms`
    )
  }
} finally {
  slots.close()
  rmSync(folder, { recursive: true })
}
