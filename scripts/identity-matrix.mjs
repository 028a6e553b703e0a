// The bits of a model in every way its weights can be held and read: budgets, trunk modes, backends, policies, lookahead,
// chunk sizes and a mirror. Each run is a process of its own that writes --dump-logits; its hash is of those bytes and of
// the tokens that follow. Runs: a pairwise design (every value of every setting meets every value of every other), then
// random ones of the whole product. Prints a table; ends with 1 and names the runs that differ from the first.
//   node scripts/identity-matrix.mjs MODEL [--also COPY] [--prompt 70] [--tokens 3] [--sample 12] [--seed 1]
// COPY: a folder with a copy of the shards; without it there is no mirror among the settings.
// scripts/bit-matrix.mjs does the same for what computes: instruction sets, threads, columns.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { policyNames } from '../packages/moe-cache/dist/index.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    also: { type: 'string' },
    prompt: { type: 'string', default: '70' },
    tokens: { type: 'string', default: '3' },
    sample: { type: 'string', default: '12' },
    seed: { type: 'string', default: '1' }
  }
})
const [model] = positionals
if (model === undefined || positionals.length > 1) {
  console.error(
    'usage: node scripts/identity-matrix.mjs MODEL [--also COPY] [--prompt n] [--tokens n] [--sample n] [--seed n]'
  )
  process.exit(2)
}

const main = fileURLToPath(new URL('../packages/k3-cli/dist/main.js', import.meta.url))
const k3 = (...args) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    maxBuffer: 2 ** 26
  })
  if (status !== 0) throw new Error(`k3 ${args.join(' ')}\n${stderr}`)
  return JSON.parse(stdout)
}

const BUDGETS = { smallest: 0, '25 %': 0.25, '50 %': 0.5, all: 1 }
const READING = {
  'io_uring, direct': ['io_uring', 'on'],
  'io_uring, page cache': ['io_uring', 'off'],
  'pread, direct': ['pread', 'on'],
  'pread, page cache': ['pread', 'off']
}
const FACTORS = {
  budget: Object.keys(BUDGETS),
  trunk: ['mmap', 'stream', 'resident'],
  reading: Object.keys(READING),
  policy: [...policyNames],
  lookahead: ['0', '1', '16'],
  chunk: ['64', '7', '1'],
  mirror: values.also === undefined ? ['no'] : ['no', 'yes']
}
const NAMES = Object.keys(FACTORS)
const PROMPT = Array.from({ length: Number(values.prompt) }, (_, i) => (i * 37) % 500).join(',')

/** The same numbers for the same seed: mulberry32. */
const randomOf = (seed) => {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}
const random = randomOf(Number(values.seed))
const drawn = () =>
  Object.fromEntries(NAMES.map((name) => [name, FACTORS[name][random(FACTORS[name].length)]]))

const pairsOf = (way) =>
  NAMES.flatMap((a, i) => NAMES.slice(i + 1).map((b) => `${a}=${way[a]};${b}=${way[b]}`))

/** Ways that show every pair of values: of many random ones, always the one with the most pairs not seen yet. */
const pairwise = () => {
  const first = Object.fromEntries(NAMES.map((name) => [name, FACTORS[name][0]]))
  const ways = [{ ...first, budget: 'all' }]
  const seen = new Set(pairsOf(ways[0]))
  const total = NAMES.flatMap((a, i) => NAMES.slice(i + 1).map((b) => FACTORS[a].length * FACTORS[b].length))
  const pairs = total.reduce((sum, count) => sum + count, 0)
  while (seen.size < pairs) {
    const gain = (way) => pairsOf(way).filter((pair) => !seen.has(pair)).length
    const best = Array.from({ length: 500 }, drawn).reduce((a, b) => (gain(b) > gain(a) ? b : a))
    if (gain(best) === 0) continue
    ways.push(best)
    for (const pair of pairsOf(best)) seen.add(pair)
  }
  return ways
}

const CONTEXT = String(Number(values.prompt) + Number(values.tokens))
const flagsOf = ({ trunk, chunk }) => [
  ...['--model', model, '--trunk', trunk, '--chunk-tokens', chunk],
  ...['--context', CONTEXT, '--threads', '2']
]

/** Bytes of the parts that hold weights; everything else takes what it takes. */
const weightBytes = ({ terms }) =>
  terms
    .filter(({ component }) =>
      ['trunk', 'trunk ring', 'head and embedding', 'expert cache'].includes(component)
    )
    .reduce((sum, { bytes }) => sum + bytes, 0)

const ringBytes = ({ terms }) => terms.find(({ component }) => component === 'trunk ring').bytes

/** Bytes of a budget: the smallest that runs with this trunk and chunk, and a share of the weights that leaves out. */
const budgets = new Map()
const ramOf = (way) => {
  const key = `${way.trunk} ${way.chunk}`
  if (!budgets.has(key)) {
    const planAt = (ram) => k3('plan', ...flagsOf(way), '--ram', ram, '--json')
    const whole = planAt('9000GB')
    const least = planAt(`${whole.smallest_bytes / 1e6}MB`)
    budgets.set(key, {
      smallest: whole.smallest_bytes,
      more: weightBytes(whole) - weightBytes(least),
      ring: ringBytes(least)
    })
  }
  const { smallest, more, ring } = budgets.get(key)
  const share = BUDGETS[way.budget]
  // neither the ring, which a plan sets aside before it pins all, nor the growing reserve may keep the last expert out
  return Math.ceil(smallest + share * more + (share === 1 ? ring + 0.05 * more + 5e7 : 0))
}

const scratch = mkdtempSync(path.join(tmpdir(), 'k3-identity-'))
const run = (way) => {
  const dump = path.join(scratch, 'logits.f32')
  const [backend, direct] = READING[way.reading]
  const ram = ramOf(way)
  const reading = ['--backend', backend, '--direct', direct]
  const also = way.mirror === 'yes' ? ['--also', values.also] : []
  const wanted = ['--ids', PROMPT, '--max-tokens', values.tokens, '--dump-logits', dump, '--json', '--quiet']
  const held = ['--ram', `${ram / 1e6}MB`, '--policy', way.policy, '--lookahead', way.lookahead]
  const start = performance.now()
  const report = k3('generate', ...flagsOf(way), ...held, ...reading, ...also, ...wanted)
  const seconds = (performance.now() - start) / 1e3
  const hash = createHash('sha256').update(readFileSync(dump)).update(JSON.stringify(report.ids))
  return { ram, report, seconds, hash: hash.digest('hex').slice(0, 16) }
}

const cells = (way, { ram, report, seconds, hash }) => {
  const { memory, cache, bytes_read, drives } = report
  const pinned = way.trunk === 'stream' ? `${memory.trunk.pinned_layers.length} pinned` : ''
  const hits = cache.hit_rate === null ? '-' : `${(100 * cache.hit_rate).toFixed(0)} %`
  const shares = drives.map((drive) => (drive.bytes_read / 1e9).toFixed(3)).join(' + ')
  return [
    ...[
      way.budget,
      (ram / 1e9).toFixed(3),
      way.trunk,
      pinned,
      way.reading,
      way.policy,
      way.lookahead,
      way.chunk
    ],
    ...[way.mirror, cache.slots, hits, (bytes_read / 1e9).toFixed(3), shares, seconds.toFixed(1), hash]
  ].map(String)
}

try {
  const covering = pairwise()
  const ways = [...covering, ...Array.from({ length: Number(values.sample) }, drawn)]
  const product = NAMES.reduce((count, name) => count * FACTORS[name].length, 1)
  console.log(
    `# ${path.basename(model)}: ${values.prompt} tokens of prompt, ${values.tokens} generated; ` +
      `${covering.length} runs show every pair of settings, ${values.sample} more are random, of ${product}; seed ${values.seed}`
  )
  console.log(
    'budget,GB,trunk,pinned,reading,policy,lookahead,chunk,mirror,slots,hits,GB read,GB by drive,seconds,hash'.replaceAll(
      ',',
      ' | '
    )
  )
  const hashes = ways.map((way) => {
    const result = run(way)
    console.log(cells(way, result).join(' | '))
    return result.hash
  })
  const others = ways.filter((_, i) => hashes[i] !== hashes[0])
  for (const way of others) console.log(`DIFFERS FROM THE FIRST: ${JSON.stringify(way)}`)
  const verdict = others.length === 0 ? 'one hash' : `${new Set(hashes).size} hashes`
  console.log(`${ways.length} runs, ${verdict}: ${[...new Set(hashes)].join(' ')}`)
  if (others.length > 0) process.exitCode = 1
} finally {
  rmSync(scratch, { recursive: true })
}
