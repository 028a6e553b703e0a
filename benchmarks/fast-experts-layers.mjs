// Why int8 activations of the routed experts change the last logits of a deep random model as much as they do: how far the
// input of a layer is from the exact one, layer by layer, and for how many tokens the router chooses other experts; beside
// the same for noise in the exact model, and with the exact choice imposed.
//   node benchmarks/fast-experts-layers.mjs [preset] [seed]     of `k3 synth`; default: tiny-93 11
//   node benchmarks/fast-experts-layers.mjs <folder>            of a checkpoint
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { openModel } from '../packages/k3-engine/dist/index.js'

const TOKENS = 32

/** Normal numbers, from mulberry32. */
const normals = (state) => {
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
}

const distance = (want, got) => Math.hypot(...want.map((x, i) => x - got[i])) / Math.hypot(...want)

const addNoise = (values, relative, normal) => {
  const noise = Float64Array.from(values, normal)
  const scale = (relative * Math.hypot(...values)) / Math.hypot(...noise)
  for (let i = 0; i < values.length; i++) values[i] += scale * noise[i]
}

/**
 * One pass over the prompt. `edit` may give a half of a layer another input, change what its experts give, or the logits of
 * its router; the inputs, results and choices of every layer are kept.
 */
const run = async (dir, expertActivations, edit = {}) => {
  const seen = { mixer: [], ffn: [], result: [], chosen: [] }
  let sizes
  const layer = (builtIn, { index, ffn }, half) => ({
    createState: () => builtIn.createState(),
    forward(x, state, out, tokens) {
      const used = edit.input?.(index, half) ?? x.slice(0, tokens * sizes.hiddenSize)
      seen[half][index] = used
      builtIn.forward(used, state, out, tokens)
      if (half === 'mixer' || ffn === 'dense') return
      const result = out.subarray(0, tokens * sizes.hiddenSize)
      edit.result?.(index, result)
      seen.result[index] = result.slice()
      seen.chosen[index] = builtIn.routing.chosen.slice(0, tokens * sizes.moe.topK)
    }
  })
  const weights = (builtIn) => ({
    vector: (name) => builtIn.vector(name),
    tensor: (name, bind) => builtIn.tensor(name, bind),
    linears(names) {
      const linears = builtIn.linears(names)
      const router = /layers\.(\d+)\.block_sparse_moe\.gate\.weight$/.exec(names[0])
      if (router === null || edit.logits === undefined) return linears
      return {
        apply(x, outs, tokens) {
          linears.apply(x, outs, tokens)
          edit.logits(Number(router[1]), outs[0], sizes.moe)
        }
      }
    }
  })
  const model = await openModel(dir, { expertActivations, chunkTokens: TOKENS, parts: { layer, weights } })
  sizes = model.config
  const ids = Array.from({ length: TOKENS }, (_, i) => (i * 7 + 3) % sizes.vocabSize)
  const logits = await model.forward(ids)
  await model[Symbol.asyncDispose]()
  return { ...seen, logits, last: logits.slice(-sizes.vocabSize), topK: sizes.moe.topK }
}

/** The experts a token of a layer was given. */
const choice = ({ chosen, topK }, layer, token) =>
  new Set(chosen[layer].subarray(token * topK, (token + 1) * topK))

/** The share of (layer, token) pairs with another set of experts, in percent. */
const changedSets = (want, got) => {
  let [changed, pairs] = [0, 0]
  want.chosen.forEach((_, layer) => {
    for (let token = 0; token < TOKENS; token++, pairs++) {
      const before = choice(want, layer, token)
      if ([...choice(got, layer, token)].some((expert) => !before.has(expert))) changed++
    }
  })
  return (100 * changed) / pairs
}

/** Edits the logits of a router so that it can only choose what it chose in `want`, with the weights of its own logits. */
const choiceOf = (want) => ({
  logits(layer, logits, { expertCount }) {
    for (let token = 0; token < TOKENS; token++) {
      const allowed = choice(want, layer, token)
      for (let e = 0; e < expertCount; e++) if (!allowed.has(e)) logits[token * expertCount + e] = -200
    }
  }
})

/** Adds noise of size(layer), relative to what a layer's experts give. */
const noiseOf = (size, state) => {
  const normal = normals(state)
  return { result: (layer, result) => size(layer) > 0 && addNoise(result, size(layer), normal) }
}

/** One line: inputs of some layers, and the logits, relative to the exact ones in length. */
const print = (name, want, got) => {
  const depth = want.mixer.length
  const shown = [2, 4, 8, 16, 32, 64, depth - 1].filter(
    (layer, i, all) => layer < depth && i === all.indexOf(layer)
  )
  const inputs = shown.map((layer) => distance(want.mixer[layer], got.mixer[layer]).toExponential(1))
  console.log(
    `${name.padEnd(46)} inputs of layers ${shown.join(', ')}: ${inputs.join(' ')}; ` +
      `logits ${distance(want.logits, got.logits).toExponential(1)}, last ${distance(want.last, got.last).toExponential(1)}; ` +
      `other experts ${changedSets(want, got).toFixed(1)} %`
  )
}

const compareAll = async (dir) => {
  const want = await run(dir, 'exact')
  const alone = await run(dir, 'int8', { input: (layer, half) => want[half][layer] })
  const sizes = want.result.map((result, layer) => distance(result, alone.result[layer]))
  const ordered = Object.values(sizes).sort((a, b) => a - b)
  const [least, median, most] = [ordered[0], ordered[ordered.length >> 1], ordered.at(-1)]
  const percent = [least, median, most].map((size) => (100 * size).toFixed(2))
  console.log(
    `int8 with exact inputs moves what a layer's feed-forward gives by ${percent.join(', ')} % (least, median, most)`
  )
  const cases = [
    ['int8', 'int8', {}],
    ['int8, exact choice', 'int8', choiceOf(want)],
    ...[1, 2, 3].map((state) => [
      `exact, such noise in every layer, ${state}`,
      'exact',
      noiseOf((i) => sizes[i], state)
    ]),
    [
      'exact, such noise in every layer, exact choice',
      'exact',
      { ...noiseOf((i) => sizes[i], 1), ...choiceOf(want) }
    ],
    ...[1e-3, 1e-4, 1e-5, 1e-6].map((size) => [
      `exact, noise of ${size.toExponential()} in layer 1`,
      'exact',
      noiseOf((layer) => (layer === 1 ? size : 0), 9)
    ]),
    [
      'exact, noise of 1e-3 in layer 1, exact choice',
      'exact',
      { ...noiseOf((layer) => (layer === 1 ? 1e-3 : 0), 9), ...choiceOf(want) }
    ]
  ]
  for (const [name, activations, edit] of cases) print(name, want, await run(dir, activations, edit))
}

/** The checkpoint of a preset, for as long as `use` takes. */
const withPreset = async (preset, seed, use) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'k3-fast-experts-layers-'))
  try {
    const main = path.join(import.meta.dirname, '../packages/k3-cli/dist/main.js')
    const out = path.join(folder, preset)
    const flags = ['--preset', preset, '--seed', seed, '--out', out, '--quiet']
    execFileSync(process.execPath, [main, 'synth', ...flags])
    await use(out)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const [name = 'tiny-93', seed = '11'] = process.argv.slice(2)
if (existsSync(name)) await compareAll(name)
else await withPreset(name, seed, compareAll)
