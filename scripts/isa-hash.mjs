// One hash an op and instruction set, of every op of every native package on fixed inputs: the lines of any two machines
// must agree but for the name of the instruction set. Each is run without a pool and on 1 to 4 threads. No test runner, so
// that it runs under an emulator.
//   node scripts/isa-hash.mjs [isa] ...       only these
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import * as bf16 from '../packages/bf16-linear/dist/index.js'
import * as kda from '../packages/kda/dist/index.js'
import * as mla from '../packages/mla/dist/index.js'
import * as mxfp4 from '../packages/mxfp4/dist/index.js'
import * as synth from '../packages/synth/dist/index.js'
import { createPool } from '../packages/task-pool/dist/index.js'
import * as uring from '../packages/uring/dist/index.js'
import * as vector from '../packages/vector-ops/dist/index.js'

const wanted = process.argv.slice(2)
const TOKENS = [1, 2, 7, 64]
const THREADS = [1, 2, 3, 4]

/** Seeded bytes (mulberry32). */
const bytes = (length, seed) => {
  let state = seed
  const word = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return (t ^ (t >>> 14)) >>> 0
  }
  return new Uint8Array(Uint32Array.from({ length: Math.ceil(length / 4) }, word).buffer, 0, length)
}
/** Seeded multiples of 2^-15 in [-scale, scale). */
const floats = (length, seed, scale = 1) =>
  Float32Array.from(new Int16Array(bytes(2 * length, seed).buffer, 0, length), (x) => (scale * x) / 32768)
/** bf16 weights of magnitude 2^-8 to 2^-1. */
const bf16s = (length, seed) =>
  new Uint16Array(bytes(2 * length, seed).buffer, 0, length).map(
    (h) => (h & 0x807f) | ((119 + ((h >> 7) & 7)) << 7)
  )
const blank = (length) => new Float32Array(length).fill(NaN)
/** An output of `run`, which is given it empty. */
const filled = (length, run) => {
  const out = blank(length)
  run(out)
  return out
}

const bf16Ops = [33, 130, 1040].flatMap((cols) =>
  TOKENS.map((tokens) => ({
    name: `bf16-linear/${cols}x37/T${tokens}`,
    isas: bf16.supportedIsas,
    run(options) {
      const weights = bf16s(37 * cols, cols)
      const x = floats(tokens * cols, 1)
      const linears = [37, 5].map((rows) => bf16.createLinear({ weights, rows, cols }, options))
      const outs = linears.map(({ rows }) => blank(tokens * rows))
      bf16.createLinearGroup(linears).apply(x, outs, tokens)
      return [filled(tokens * 37, (out) => linears[0].apply(x, out, tokens)), ...outs]
    }
  }))
)

const vectorOps = [1, 7, 65, 200].flatMap((dim) =>
  TOKENS.map((tokens) => ({
    name: `vector-ops/${dim}/T${tokens}`,
    isas: vector.supportedIsas,
    run(options) {
      const ops = vector.createVectorOps(options)
      const n = tokens * dim
      const [x, y] = [floats(n, 1, 30), floats(n, 2, 90)]
      const weight = floats(dim, 3)
      const sources = [x, y, floats(n, 4), floats(n, 5)]
      const k = Math.min(dim, 5)
      const router = ops.createRouter({ bias: floats(dim, 6), k, renormalize: true, scalingFactor: 2.5 })
      const indices = new Int32Array(tokens * k)
      const weights = filled(tokens * k, (out) => router.route(x, indices, out, tokens))
      return [
        indices,
        weights,
        filled(n, (out) => ops.rmsNorm(x, weight, 1e-5, out, tokens)),
        filled(n, (out) => ops.residualMix(sources, weight, 1e-5, out, tokens)),
        filled(tokens * 4, (out) => ops.mixWeights(sources, weight, 1e-5, out, tokens)),
        filled(n, (out) => ops.situGlu(x, y, { beta: 4, linearBeta: 25 }, out, n)),
        ...['exp', 'sigmoid', 'tanh'].map((name) => filled(n, (out) => ops[name](y, out, n))),
        filled(n, (out) => ops.add(x, y, out, n))
      ]
    }
  }))
)

/** MXFP4 bytes with scales around 2^-7. */
const mxfp4Bytes = (numbers, seed) => ({
  packed: bytes(numbers / 2, seed),
  scales: bytes(numbers / 32, seed + 1).map((byte) => 118 + (byte & 7))
})

const activations = ['exact', 'int8']

const matrixOps = [32, 96, 416].flatMap((cols) =>
  TOKENS.map((tokens) => ({
    name: `mxfp4-matrix/${cols}x37/T${tokens}`,
    isas: mxfp4.supportedIsas,
    run(options) {
      const spec = { ...mxfp4Bytes(37 * cols, cols), rows: 37, cols }
      return activations.map((activations) => {
        const matrix = mxfp4.createMatrix(spec, { ...options, activations })
        return filled(tokens * 37, (out) => matrix.apply(floats(tokens * cols, 1), out, tokens))
      })
    }
  }))
)

/** Experts of three matrices in a row, each its codes and then its scales. */
const expertOps = TOKENS.map((tokens) => ({
  name: `mxfp4-experts/96x160/T${tokens}`,
  isas: mxfp4.supportedIsas,
  run(options) {
    const [latent, inner, experts, topK] = [96, 160, 3, 2]
    const numbers = latent * inner
    const matrixBytes = numbers / 2 + numbers / 32
    const region = new Uint8Array(experts * 3 * matrixBytes)
    for (let i = 0; i < 3 * experts; i++) {
      const { packed, scales } = mxfp4Bytes(numbers, i)
      region.set(packed, i * matrixBytes)
      region.set(scales, i * matrixBytes + numbers / 2)
    }
    const at = (matrix, offset) => matrix * matrixBytes + offset
    const layout = {
      w1Packed: at(0, 0),
      w1Scale: at(0, numbers / 2),
      w2Packed: at(1, 0),
      w2Scale: at(1, numbers / 2),
      w3Packed: at(2, 0),
      w3Scale: at(2, numbers / 2)
    }
    const spec = { latent, inner, topK, beta: 4, linearBeta: 25, layout }
    const bases = Float64Array.from({ length: experts }, (_, e) => e * 3 * matrixBytes)
    const starts = Int32Array.from({ length: experts + 1 }, (_, e) =>
      Math.floor((e * tokens * topK) / experts)
    )
    const tokenOf = Int32Array.from({ length: tokens * topK }, (_, p) => p % tokens)
    const batch = { count: experts, bases, starts, tokens: tokenOf }
    const [mlp, fast] = activations.map((activations) =>
      mxfp4.createExpertMlp(spec, region, { ...options, activations })
    )
    const [pairs, fastPairs] = [mlp, fast].map((op) =>
      filled(tokens * topK * latent, (out) => op.apply(floats(tokens * latent, 1, 4), batch, out))
    )
    const pairOf = Int32Array.from({ length: tokens * topK }, (_, i) => i)
    const combined = blank(tokens * latent)
    mlp.combine(pairs, pairOf, floats(tokens * topK, 2), combined, tokens)
    return [pairs, fastPairs, combined]
  }
}))

const formatOp = {
  name: 'mxfp4-format',
  isas: () => ['any'],
  run() {
    const shape = { rows: 5, cols: 96 }
    const { packed, scales } = mxfp4.encode(floats(480, 1, 1000), shape)
    return [packed, scales, filled(480, (out) => mxfp4.decode(packed, scales, shape, out))]
  }
}

const kdaOps = [
  [1, 1, 1],
  [3, 7, 2],
  [5, 17, 5],
  [3, 33, 4],
  [2, 128, 4]
].flatMap(([heads, headDim, convTaps]) =>
  TOKENS.map((tokens) => ({
    name: `kda/${heads}x${headDim}/taps${convTaps}/T${tokens}`,
    isas: kda.supportedIsas,
    run(options) {
      const width = heads * headDim
      const shape = { heads, headDim, convTaps, gateLowerBound: -5, normEps: 1e-5 }
      const [qConv, kConv, vConv] = [1, 2, 3].map((seed) => floats(width * convTaps, seed))
      const norms = { aLog: floats(heads, 4), dtBias: floats(width, 5, 2), oNorm: floats(headDim, 6) }
      const op = kda.createKda(shape, { qConv, kConv, vConv, ...norms }, options)
      const row = (seed) => floats(tokens * width, seed, 4)
      const inputs = { q: row(7), k: row(8), v: row(9), decay: row(10), gate: row(11) }
      const beta = floats(tokens * heads, 12, 4)
      const state = op.createState()
      state.recurrence.set(floats(state.recurrence.length, 13))
      state.tails.set(floats(state.tails.length, 14))
      const unit = filled(tokens * width, (out) =>
        kda.l2Normalize(inputs.k, out, { rows: tokens * heads, dim: headDim, eps: 1e-6, isa: options.isa })
      )
      const out = filled(tokens * width, (y) => op.forward({ ...inputs, beta }, state, y, tokens))
      const decay = filled(tokens * width, (g) => op.decayGate(inputs.decay, g, tokens))
      const recurrence = state.recurrence.slice()
      const rule = { q: unit, k: unit, v: inputs.v, decay, beta: beta.map(Math.abs).map((b) => b / 4) }
      const ruled = filled(tokens * width, (y) => op.recur(rule, recurrence, y, tokens))
      const tail = floats((convTaps - 1) * width, 15)
      const conv = filled(tokens * width, (y) =>
        kda.shortConv(inputs.q, tail, qConv, y, { tokens, channels: width, taps: convTaps, ...options })
      )
      return [out, state.recurrence, state.tails, unit, decay, ruled, recurrence, conv, tail]
    }
  }))
)

const mlaOps = [
  [1, 1, 0, 1, 1],
  [3, 16, 8, 16, 32],
  [7, 17, 3, 9, 33],
  [13, 32, 16, 20, 130]
].flatMap(([heads, nopeDim, sharedKeyDim, valueDim, latentDim]) =>
  TOKENS.map((tokens) => ({
    name: `mla/${heads}x${nopeDim}+${sharedKeyDim}/${latentDim}/T${tokens}`,
    isas: mla.supportedIsas,
    run(options) {
      const shape = { heads, nopeDim, sharedKeyDim, valueDim, latentDim, normEps: 1e-6 }
      const kvUp = bf16s(heads * (nopeDim + valueDim) * latentDim, 1)
      const op = mla.createMla(shape, { kvNorm: floats(latentDim, 2), kvUp }, options)
      const cache = op.createCache()
      const outs = [0, 1].map((call) => {
        const count = call === 0 ? 126 : tokens
        const inputs = {
          queries: floats(count * heads * (nopeDim + sharedKeyDim), 3 + call, 4),
          kv: floats(count * (latentDim + sharedKeyDim), 5 + call),
          gate: floats(count * heads * valueDim, 7 + call, 4)
        }
        return filled(count * heads * valueDim, (out) => op.forward(inputs, cache, out, count))
      })
      return [...outs, cache.copy().rows]
    }
  }))
)

const synthOp = {
  name: 'synth',
  isas: synth.supportedIsas,
  run(options) {
    const layer = 'language_model.model.layers.1.'
    const filler = synth.createFiller(synth.geometryOf('tiny'), 5n, options)
    return [
      { name: `${layer}self_attn.q_proj.weight`, dtype: 'BF16', shape: [128, 128] },
      { name: `${layer}self_attn.dt_bias`, dtype: 'F32', shape: [128] },
      { name: `${layer}block_sparse_moe.experts.0.w1.weight_packed`, dtype: 'U8', shape: [64, 32] },
      { name: `${layer}block_sparse_moe.experts.0.w1.weight_scale`, dtype: 'U8', shape: [64, 2] }
    ].map((tensor) => {
      const out = new Uint8Array(101)
      filler.fill(tensor, 12, out)
      return out
    })
  }
}

/** Reads at odd places by the best backend there is, by threads, and through a mapping. */
const readFiles = async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'k3-isa-hash-'))
  const file = path.join(folder, 'bytes')
  writeFileSync(file, bytes(300_001, 1))
  const [at, length] = [4099, 200_003]
  const hashes = []
  for (const backend of ['auto', 'pread']) {
    const reader = uring.openReader([file], { backend })
    const region = uring.allocRegion(uring.paddedBytes(at, length))
    await reader.submit([{ file: 0, offset: at, length, region, at: 0 }]).done
    hashes.push(hashOf([region.view(at % 4096, length)]))
    if (backend === 'auto') {
      const { ioUringRefusal } = reader.info
      console.error(`uring reads by ${reader.backend}${ioUringRefusal ? `: ${ioUringRefusal}` : ''}`)
    }
    await reader.close()
  }
  const mapping = uring.mapReadOnly(file)
  hashes.push(hashOf([mapping.view(at, length)]))
  mapping.close()
  rmSync(folder, { recursive: true })
  if (new Set(hashes).size !== 1) throw new Error(`three ways to read a file, not one result: ${hashes}`)
  console.log(`uring any ${hashes[0]}`)
}

const hashOf = (arrays) => {
  const hash = createHash('sha256')
  for (const array of arrays) {
    if (array.some(Number.isNaN)) throw new Error('NaN, whose bits machines choose, or a place nobody wrote')
    hash.update(new Uint8Array(array.buffer, array.byteOffset, array.byteLength))
  }
  return hash.digest('hex').slice(0, 16)
}

const pools = THREADS.map((threads) => createPool({ threads, spinMicros: 0 }))
const ops = [...bf16Ops, ...vectorOps, formatOp, ...matrixOps, ...expertOps, ...kdaOps, ...mlaOps, synthOp]
for (const { name, isas, run } of ops) {
  for (const isa of isas()) {
    if (wanted.length > 0 && isa !== 'any' && !wanted.includes(isa)) continue
    const alone = hashOf(run({ isa }))
    for (const pool of pools) {
      const shared = hashOf(run({ isa, pool }))
      if (alone === shared) continue
      throw new Error(`${name} on ${isa}: ${alone} without a pool, ${shared} on ${pool.threads} threads`)
    }
    console.log(`${name} ${isa} ${alone}`)
  }
}
for (const pool of pools) pool.close()
await readFiles()
