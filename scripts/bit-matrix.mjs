// The bits of whole models in every way they can be computed: each instruction set of this machine with 1 to 4 threads and
// 1, 2, 7 and 64 tokens that go through a layer together. One line with a hash for each, over the logits after every token
// of a prompt and three more; ends with 1 when a model has two hashes. scripts/isa-hash.mjs does the same for single ops.
//   node scripts/bit-matrix.mjs [demo|tiny|tiny-93] ...       all three
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { modelDir } from '../packages/demo-model/index.js'
import { openModel } from '../packages/k3-engine/dist/index.js'
import { supportedIsas } from '../packages/vector-ops/dist/index.js'

const THREADS = [1, 2, 3, 4]
const CHUNK_TOKENS = [1, 2, 7, 64]
// a whole chunk of 64 tokens and a ragged one
const PROMPT = Array.from({ length: 70 }, (_, i) => (i * 37) % 500)
const MORE = [5, 400, 5]

const wanted = process.argv.slice(2)
const scratch = mkdtempSync(path.join(tmpdir(), 'k3-bit-matrix-'))

const synthesized = (preset) => {
  const dir = path.join(scratch, preset)
  const k3 = fileURLToPath(new URL('../packages/k3-cli/dist/main.js', import.meta.url))
  const flags = ['synth', '--preset', preset, '--seed', '5', '--out', dir, '--quiet']
  if (spawnSync(process.execPath, [k3, ...flags], { stdio: 'inherit' }).status !== 0) process.exit(1)
  return dir
}

const models = {
  demo: () => modelDir,
  tiny: () => synthesized('tiny'),
  'tiny-93': () => synthesized('tiny-93')
}

const hashOf = async (dir, options) => {
  const model = await openModel(dir, options)
  const session = model.createSession()
  const hash = createHash('sha256')
  const add = (logits) => hash.update(new Uint8Array(logits.buffer, logits.byteOffset, logits.byteLength))
  add(await session.appendAll(PROMPT))
  for (const id of MORE) add(await session.step(id))
  await model[Symbol.asyncDispose]()
  return hash.digest('hex').slice(0, 16)
}

const unknown = wanted.find((name) => !Object.hasOwn(models, name))
if (unknown !== undefined) {
  console.error(`bit-matrix: no model '${unknown}'; there are ${Object.keys(models).join(', ')}`)
  process.exit(2)
}
try {
  for (const [name, place] of Object.entries(models)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue
    const dir = place()
    const hashes = new Set()
    for (const isa of supportedIsas()) {
      for (const threads of THREADS) {
        for (const chunkTokens of CHUNK_TOKENS) {
          const hash = await hashOf(dir, { isa, threads, chunkTokens })
          hashes.add(hash)
          console.log(`${name} ${isa} ${threads} threads, ${chunkTokens} tokens: ${hash}`)
        }
      }
    }
    if (hashes.size === 1) continue
    console.log(`${name}: ${hashes.size} hashes, not one`)
    process.exitCode = 1
  }
} finally {
  rmSync(scratch, { recursive: true })
}
