// What int8 activations of the routed experts do to a model: perplexity of the demo model on its evaluation text, and how
// far the last logits of it and of the tiny models are from the exact ones, relative to their length.
//   node benchmarks/fast-experts.mjs
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { modelDir, perplexityFile } from '../packages/demo-model/index.js'
import { openModel } from '../packages/k3-engine/dist/index.js'

const modes = ['exact', 'int8']

/** The result of `run` with the model in each mode. */
const inBoth = async (dir, run) => {
  const results = []
  for (const expertActivations of modes) {
    const model = await openModel(dir, { expertActivations })
    results.push(await run(model))
    await model[Symbol.asyncDispose]()
  }
  return results
}

/** As `k3 self-test` defines it: every line a document, all its tokens but the first scored. */
const perplexity = async (model) => {
  const { vocabSize } = model.config
  let [sum, scored] = [0, 0]
  for (const line of readFileSync(perplexityFile, 'utf8').split('\n').filter(Boolean)) {
    const ids = model.tokenizer.encode(line)
    const rows = await model.forward(ids)
    for (let i = 1; i < ids.length; i++, scored++) {
      const logits = rows.subarray((i - 1) * vocabSize, i * vocabSize)
      const most = Math.max(...logits)
      sum += most + Math.log(logits.reduce((total, x) => total + Math.exp(x - most), 0)) - logits[ids[i]]
    }
  }
  return Math.exp(sum / scored)
}

/** Logits after 32 ids. */
const lastLogits = async (model) => {
  const { vocabSize } = model.config
  const ids = Array.from({ length: 32 }, (_, i) => (i * 7 + 3) % vocabSize)
  return (await model.forward(ids)).slice(-vocabSize)
}

const printDistance = async (name, dir) => {
  const [want, got] = await inBoth(dir, lastLogits)
  const distance = Math.hypot(...want.map((x, i) => x - got[i])) / Math.hypot(...want)
  console.log(`${name}, last logits: relative L2 ${distance.toExponential(1)}`)
}

const [exact, int8] = await inBoth(modelDir, perplexity)
console.log(`demo model, perplexity: exact ${exact.toFixed(8)}, int8 ${int8.toFixed(8)}`)
await printDistance('demo model', modelDir)
const folder = mkdtempSync(path.join(tmpdir(), 'k3-fast-experts-'))
try {
  for (const [preset, seed] of [
    ['tiny', '5'],
    ['tiny-93', '11']
  ]) {
    const out = path.join(folder, preset)
    const main = path.join(import.meta.dirname, '../packages/k3-cli/dist/main.js')
    const flags = ['--preset', preset, '--seed', seed, '--out', out, '--quiet']
    execFileSync(process.execPath, [main, 'synth', ...flags])
    await printDistance(`${preset}, seed ${seed}`, out)
  }
} finally {
  rmSync(folder, { recursive: true })
}
