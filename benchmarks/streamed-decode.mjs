// Decoding with trunk and experts from the disk, held against the disk itself: seconds a token, bytes a token, and what a
// raw probe of the same files reads a second in the same run, before and after. One JSON line for each setting.
//   node benchmarks/streamed-decode.mjs <checkpoint> [tokens] [lookahead,…] [trunk] [slots]
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { openModel } from '../packages/k3-engine/dist/index.js'
import { allocRegion, openReader } from '../packages/uring/dist/index.js'

const [dir, tokens = '5', lookaheads = '0', trunk = 'stream', slots = '16'] = process.argv.slice(2)
const probeBytes = 3e9
const runBytes = 64 * 2 ** 20

// touched once before anything is timed: the first read into fresh pages pays for their allocation
const region = allocRegion(4 * runBytes)

/** GB/s of large reads in file order, several batches always waiting. */
const probe = async () => {
  const files = readdirSync(dir)
    .filter((name) => name.endsWith('.safetensors'))
    .map((name) => path.join(dir, name))
  const reader = openReader(files)
  const runs = files.flatMap((file, index) =>
    Array.from({ length: Math.floor(statSync(file).size / runBytes) }, (_, i) => ({
      file: index,
      offset: i * runBytes,
      length: runBytes
    }))
  )
  const flights = []
  const start = performance.now()
  let bytes = 0
  for (let i = 0; bytes < probeBytes; i++) {
    if (flights.length === 4) flights.shift().wait(0)
    flights.push(reader.submit([{ ...runs[i % runs.length], region, at: (i % 4) * runBytes }]))
    bytes += runBytes
  }
  for (const flight of flights) flight.wait(0)
  const seconds = (performance.now() - start) / 1e3
  await reader.close()
  return bytes / 1e9 / seconds
}

/** CPU seconds of the threads that read. */
const readingCpu = () =>
  readdirSync('/proc/self/task')
    .map((task) => readFileSync(`/proc/self/task/${task}/stat`, 'latin1'))
    .filter((stat) => /\((k3-uring|k3-pread)\)/.test(stat))
    .reduce((sum, stat) => {
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return sum + (Number(fields[11]) + Number(fields[12])) / 100
    }, 0)

const decode = async (lookahead) => {
  const model = await openModel(dir, { trunk, cacheSlots: Number(slots), lookahead })
  const session = model.createSession()
  await session.append([1])
  await session.step(3)
  const before = model.traffic
  const cpu = readingCpu()
  const start = performance.now()
  for (let i = 0; i < Number(tokens); i++) await session.step(2 + 7 * i)
  const seconds = (performance.now() - start) / 1e3
  const readers = (readingCpu() - cpu) / seconds
  const after = model.traffic
  const bytes = after.bytesRead + after.trunkBytesRead - before.bytesRead - before.trunkBytesRead
  const { backend } = model
  await model[Symbol.asyncDispose]()
  return { seconds, bytes, readers, backend, lookahead: after.lookahead }
}

await probe()
for (const lookahead of lookaheads.split(',').map(Number)) {
  const first = await probe()
  const { seconds, bytes, readers, backend, lookahead: predictions } = await decode(lookahead)
  const second = await probe()
  const gbps = (first + second) / 2
  const row = {
    backend,
    trunk,
    slots: Number(slots),
    lookahead,
    'GB a token': Number((bytes / 1e9 / tokens).toFixed(3)),
    's a token': Number((seconds / tokens).toFixed(3)),
    'probe GB/s': [first, second].map((rate) => Number(rate.toFixed(2))),
    'of the disk': Number((seconds / (bytes / 1e9 / gbps)).toFixed(3)),
    'reading CPU %': Number((100 * readers).toFixed(2)),
    'peak RSS GB': Number(((process.resourceUsage().maxRSS * 1024) / 1e9).toFixed(2)),
    predictions
  }
  console.log(JSON.stringify(row))
}
