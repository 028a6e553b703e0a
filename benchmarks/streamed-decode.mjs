// Decoding with trunk and experts from the disk, held against the disk itself: a raw probe of the same files, some tokens,
// the probe again, and so on, for a shared disk gives another rate every second. Prints a line for each group of tokens,
// against the mean of the probes around it, and a JSON line for each setting with the medians of the groups.
//   node benchmarks/streamed-decode.mjs <checkpoint> [groups of 3 tokens] [lookahead,…] [trunk] [slots]
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { openModel } from '../packages/k3-engine/dist/index.js'
import { allocRegion, openReader } from '../packages/uring/dist/index.js'

const [dir, groups = '7', lookaheads = '0', trunk = 'stream', slots = '16'] = process.argv.slice(2)
const TOKENS = 3
const probeBytes = 4e9
const runBytes = 64 * 2 ** 20

// touched once before anything is timed: the first read into fresh pages pays for their allocation
const region = allocRegion(4 * runBytes)
const files = readdirSync(dir)
  .filter((name) => name.endsWith('.safetensors'))
  .map((name) => path.join(dir, name))
const runs = files.flatMap((file, index) =>
  Array.from({ length: Math.floor(statSync(file).size / runBytes) }, (_, i) => ({
    file: index,
    offset: i * runBytes,
    length: runBytes
  }))
)
// where the last probe ended: all of the checkpoint is read in turn, as a token does
let nextRun = 0

/** GB/s of large reads in file order, several batches always waiting; depth and blocks are those of the engine's reader. */
const probe = async () => {
  const reader = openReader(files)
  const flights = []
  const start = performance.now()
  let bytes = 0
  for (let i = 0; bytes < probeBytes; i++) {
    if (flights.length === 4) flights.shift().wait(0)
    const run = runs[nextRun++ % runs.length]
    flights.push(reader.submit([{ ...run, region, at: (i % 4) * runBytes }]))
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

const counts = ({ traffic }) => ({
  delivered: traffic.drives.reduce((sum, { bytesRead }) => sum + bytesRead, 0),
  busy: traffic.drives.reduce((sum, { busySeconds }) => sum + busySeconds, 0),
  cpu: readingCpu(),
  ms: performance.now()
})

/** Tokens back to back. One before them, for what was read ahead during the probe is not theirs. */
const decode = async (model, session) => {
  const next = () => session.step(2 + ((7 * session.position) % 1000))
  await next()
  const before = counts(model)
  for (let i = 0; i < TOKENS; i++) await next()
  const after = counts(model)
  const seconds = (after.ms - before.ms) / 1e3
  const bytes = after.delivered - before.delivered
  return {
    seconds,
    bytes,
    idle: 1 - (after.busy - before.busy) / seconds,
    cpu: (after.cpu - before.cpu) / seconds
  }
}

/** Waits until what was read ahead is there: the probe would share the disk with it. */
const settled = async (model) => {
  for (let before = -1, now = counts(model).delivered; now !== before; ) {
    await new Promise((resolve) => setTimeout(resolve, 300))
    before = now
    now = counts(model).delivered
  }
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]
const rounded = (number, digits) => Number(number.toFixed(digits))

const measured = async (lookahead) => {
  const model = await openModel(dir, { trunk, cacheSlots: Number(slots), lookahead })
  const session = model.createSession()
  await session.append([1])
  await settled(model)
  const rows = []
  let first = await probe()
  for (let i = 0; i < Number(groups); i++) {
    const { seconds, bytes, idle, cpu } = await decode(model, session)
    await settled(model)
    const second = await probe()
    const ofDisk = seconds / (bytes / 1e9 / ((first + second) / 2))
    const texts = [seconds / TOKENS, bytes / 1e9 / TOKENS, first, second, ofDisk].map((n) => n.toFixed(3))
    const shares = `drive idle ${(100 * idle).toFixed(2)} %, reading CPU ${(100 * cpu).toFixed(2)} %`
    console.log(
      `# ${texts[0]} s a token of ${texts[1]} GB, probe ${texts[2]} ${texts[3]}: ${texts[4]} of the disk, ${shares}`
    )
    rows.push({ seconds, bytes, idle, cpu, ofDisk, probe: first })
    first = second
  }
  const of = (name) => median(rows.map((row) => row[name]))
  const { backend, traffic } = model
  await model[Symbol.asyncDispose]()
  return {
    ...{ backend, trunk, slots: Number(slots), lookahead, groups: rows.length },
    'GB a token': rounded(of('bytes') / 1e9 / TOKENS, 3),
    's a token': rounded(of('seconds') / TOKENS, 3),
    'probe GB/s': rounded(of('probe'), 2),
    'of the disk': rounded(of('ofDisk'), 3),
    'drive idle %': rounded(100 * of('idle'), 2),
    'reading CPU %': rounded(100 * of('cpu'), 2),
    'peak RSS GB': rounded((process.resourceUsage().maxRSS * 1024) / 1e9, 2),
    predictions: traffic.lookahead
  }
}

await probe()
for (const lookahead of lookaheads.split(',').map(Number))
  console.log(JSON.stringify(await measured(lookahead)))
