// @k3/tokenizer beside npm tiktoken (WASM) with the released vocabulary: MB of UTF-8 a second, 1 MB of hostile text, and
// loading in a fresh process. Times are CPU time of all threads, which other work on the machine disturbs less.
//   node benchmarks/tokenizer.mjs [rounds]
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadTokenizer } from '../packages/tokenizer/dist/index.js'

const rounds = Number(process.argv[2] ?? 7)
const root = fileURLToPath(new URL('..', import.meta.url))
const require = createRequire(join(root, 'packages/tokenizer/package.json'))
const fixtures = join(root, 'fixtures/tokenizer')
const read = (...path) => readFileSync(join(...path), 'utf8')

/** Median and best CPU milliseconds of cases that take turns; a case is { name, run }, its first run is not counted. */
const interleaved = (cases) => {
  const times = new Map(cases.map(({ name }) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const { name, run } of cases) {
      const before = process.cpuUsage()
      run()
      const { user, system } = process.cpuUsage(before)
      if (round > 0) times.get(name).push((user + system) / 1e3)
    }
  }
  return [...times].map(([name, list]) => {
    const sorted = list.sort((a, b) => a - b)
    return { name, median: sorted[rounds >> 1], best: sorted[0] }
  })
}

const filesUnder = (folder, ending) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((file) => file.endsWith(ending) && !file.includes('node_modules') && !file.includes('dist'))
    .map((file) => read(root, folder, file))

const shuffled = (items) => {
  const order = [...items]
  let state = 1
  for (let i = order.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    const j = state % (i + 1)
    ;[order[i], order[j]] = [order[j], order[i]]
  }
  return order
}

const repository = [
  ...filesUnder('docs', '.md'),
  ...filesUnder('packages', '.ts'),
  ...filesUnder('packages/demo-model/training', '.py'),
  ...JSON.parse(read(fixtures, 'vectors.json')).tokenizer.texts.map(({ text }) => text)
].join('\n')
const typescript = dirname(require.resolve('typescript'))
const translations = readdirSync(typescript, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .flatMap(({ name }) =>
    Object.values(JSON.parse(read(typescript, name, 'diagnosticMessages.generated.json')))
  )
const texts = {
  'repository-repeated': repository.repeat(Math.ceil(4e6 / Buffer.byteLength(repository))),
  'repository-lines-once': shuffled(new Set(repository.split('\n'))).join('\n'),
  'messages-13-languages': translations.join('\n'),
  'messages-shuffled-words-once': shuffled(new Set(translations.join(' ').split(' '))).join(' '),
  'typescript-compiler': read(typescript, 'typescript.js').slice(0, 4e6)
}

const tokenizer = loadTokenizer(fixtures, { official: true })
const { Tiktoken } = require('tiktoken')
const pattern = /## 5\.[\s\S]*?```\n([\s\S]*?)\n```/
  .exec(read(fixtures, 'TOKENIZER.md'))[1]
  .split('\n')
  .join('|')
const oracle = new Tiktoken(read(fixtures, 'tiktoken.model'), {}, pattern)

console.log('work,engine,bytes,median,best,unit')
for (const [name, text] of Object.entries(texts)) {
  const bytes = Buffer.byteLength(text)
  const cases = [
    { name: 'k3', run: () => tokenizer.encode(text) },
    { name: 'tiktoken', run: () => oracle.encode_ordinary(text) }
  ]
  for (const { name: engine, median, best } of interleaved(cases)) {
    const rate = (ms) => (bytes / ms / 1e3).toFixed(1)
    console.log(`${name},${engine},${bytes},${rate(median)},${rate(best)},MB/s`)
  }
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const hostile = {
  a: 'a'.repeat(1e6),
  han: '漢'.repeat(333_333),
  spaces: ' '.repeat(1e6),
  base64: Array.from({ length: 1e6 }, (_, i) => BASE64[(Math.imul(i, 2654435761) >>> 13) & 63]).join('')
}
const hostileCases = Object.entries(hostile).map(([name, text]) => ({
  name,
  run: () => tokenizer.encode(text)
}))
for (const { name, median, best } of interleaved(hostileCases)) {
  console.log(
    `hostile-${name},k3,${Buffer.byteLength(hostile[name])},${median.toFixed(0)},${best.toFixed(0)},ms`
  )
}

const script = `import { loadTokenizer } from ${JSON.stringify(new URL('../packages/tokenizer/dist/index.js', import.meta.url))}
const before = process.cpuUsage()
loadTokenizer(${JSON.stringify(fixtures)}, { official: true })
const { user, system } = process.cpuUsage(before)
console.log((user + system) / 1e3)`
const loads = Array.from({ length: rounds }, () =>
  Number(spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }).stdout)
).sort((a, b) => a - b)
console.log(`load,k3,2795286,${loads[rounds >> 1].toFixed(0)},${loads[0].toFixed(0)},ms`)
