// Fails when a kernel has lost its vectors: every kernel that is stamped for several instruction sets must beat its own
// scalar stamp, in the same process, by a factor that is less than half of what it does.
//
// This is the one place where time decides over pass or fail, so it must not flake. Both stamps work on data that fits the
// second-level cache, take turns in rounds of a millisecond or so, and are judged by their fastest round: a busy neighbour
// makes rounds slower, never faster, and it takes one undisturbed round of each among hundreds. A case that falls
// short is measured again, ten times as long at most.
//   node scripts/speed-gate.mjs [isa] ...       only these
import { existsSync, readdirSync } from 'node:fs'
import * as bf16 from '../packages/bf16-linear/dist/index.js'
import * as kda from '../packages/kda/dist/index.js'
import * as mla from '../packages/mla/dist/index.js'
import * as mxfp4 from '../packages/mxfp4/dist/index.js'
import * as vector from '../packages/vector-ops/dist/index.js'

const ROUNDS = 40
const ATTEMPTS = 10
const wanted = process.argv.slice(2)

const waves = (length, scale = 1) => Float32Array.from({ length }, (_, i) => scale * Math.sin(0.7 * i + 0.3))
const bf16s = (length) => Uint16Array.from({ length }, (_, i) => 0x3c00 | (i % 251) | ((i & 1) << 15))
const out = new Float32Array(1 << 18)

const linear = (tokens) => (isa) => {
  const op = bf16.createLinear({ weights: bf16s(128 * 768), rows: 128, cols: 768 }, { isa })
  const x = waves(tokens * 768)
  return () => op.apply(x, out, tokens)
}

const mxfp4Bytes = (numbers) => ({
  packed: Uint8Array.from({ length: numbers / 2 }, (_, i) => Math.imul(i, 2654435761) >>> 24),
  scales: Uint8Array.from({ length: numbers / 32 }, (_, i) => 118 + (i & 7))
})

const matrix = (tokens, activations) => (isa) => {
  const op = mxfp4.createMatrix({ ...mxfp4Bytes(128 * 768), rows: 128, cols: 768 }, { isa, activations })
  const x = waves(tokens * 768)
  return () => op.apply(x, out, tokens)
}

const experts = (activations) => (isa) => {
  const [latent, inner] = [256, 256]
  const { packed, scales } = mxfp4Bytes(latent * inner)
  const whole = packed.length + scales.length
  const region = new Uint8Array(3 * whole)
  for (let i = 0; i < 3; i++) {
    region.set(packed, i * whole)
    region.set(scales, i * whole + packed.length)
  }
  const at = (i) => [i * whole, i * whole + packed.length]
  const [[w1Packed, w1Scale], [w2Packed, w2Scale], [w3Packed, w3Scale]] = [at(0), at(1), at(2)]
  const layout = { w1Packed, w1Scale, w2Packed, w2Scale, w3Packed, w3Scale }
  const op = mxfp4.createExpertMlp({ latent, inner, topK: 1, beta: 4, linearBeta: 25, layout }, region, {
    isa,
    activations
  })
  const batch = {
    count: 1,
    bases: new Float64Array(1),
    starts: Int32Array.of(0, 1),
    tokens: new Int32Array(1)
  }
  const z = waves(latent)
  return () => op.apply(z, batch, out)
}

const combine = (isa) => {
  const [latent, topK] = [1024, 16]
  const spec = { latent, inner: 32, topK, beta: 4, linearBeta: 25, layout: spread(latent) }
  const op = mxfp4.createExpertMlp(spec, new Uint8Array(1 << 18), { isa })
  const [pairs, weights] = [waves(topK * latent), waves(topK)]
  const pairOf = Int32Array.from({ length: topK }, (_, i) => i)
  return () => op.combine(pairs, pairOf, weights, out, 1)
}

/** A layout for an op whose matrices are never read: far enough apart. */
const spread = (latent) => {
  const step = latent * 32
  const names = ['w1Packed', 'w1Scale', 'w2Packed', 'w2Scale', 'w3Packed', 'w3Scale']
  return Object.fromEntries(names.map((name, i) => [name, i * step]))
}

const delta = (tokens) => (isa) => {
  const [heads, headDim, convTaps] = [2, 128, 4]
  const width = heads * headDim
  const conv = waves(width * convTaps)
  const norms = { aLog: waves(heads), dtBias: waves(width), oNorm: waves(headDim) }
  const shape = { heads, headDim, convTaps, gateLowerBound: -5, normEps: 1e-5 }
  const op = kda.createKda(shape, { qConv: conv, kConv: conv, vConv: conv, ...norms }, { isa })
  const row = waves(tokens * width)
  const inputs = { q: row, k: row, v: row, decay: row, gate: row, beta: waves(tokens * heads) }
  const state = op.createState()
  return () => op.forward(inputs, state, out, tokens)
}

const latent = (tokens) => (isa) => {
  const [heads, positions] = [4, 128]
  const dims = { heads, nopeDim: 64, sharedKeyDim: 32, valueDim: 64, latentDim: 256, normEps: 1e-6 }
  const op = mla.createMla(dims, { kvNorm: waves(256), kvUp: bf16s(heads * 128 * 256) }, { isa })
  const cache = new mla.MlaCache(288, waves((positions + tokens) * 288), positions)
  const inputs = {
    queries: waves(tokens * heads * 96),
    kv: waves(tokens * 288),
    gate: waves(tokens * heads * 64)
  }
  return () => {
    op.forward(inputs, cache, out, tokens)
    cache.truncate(positions)
  }
}

const rows = (call) => (isa) => {
  const ops = vector.createVectorOps({ isa })
  const width = 2048
  const sources = Array.from({ length: 9 }, (_, i) => waves(width, 1 + i))
  return call(ops, sources, width)
}

// name, supported instruction sets, what makes a run for one of them, and by how much AVX2 and AVX-512 have to win
const cases = [
  ['bf16-linear, 1 column', bf16, linear(1), 16, 16],
  ['bf16-linear, 16 columns', bf16, linear(16), 24, 24],
  ['mxfp4 matrix, 1 column', mxfp4, matrix(1, 'exact'), 10, 16],
  ['mxfp4 matrix, 16 columns', mxfp4, matrix(16, 'exact'), 20, 24],
  ['mxfp4 matrix, int8, 1 column', mxfp4, matrix(1, 'int8'), 12, 12],
  ['mxfp4 matrix, int8, 16 columns', mxfp4, matrix(16, 'int8'), 14, 14],
  ['mxfp4 experts', mxfp4, experts('exact'), 10, 14],
  ['mxfp4 experts, int8', mxfp4, experts('int8'), 10, 10],
  ['mxfp4 combine', mxfp4, combine, 3, 3],
  ['kda, 1 token', kda, delta(1), 8, 16],
  ['kda, 8 tokens', kda, delta(8), 18, 18],
  ['mla, 1 token', mla, latent(1), 16, 16],
  ['mla, 8 tokens', mla, latent(8), 18, 18],
  [
    'rmsNorm',
    vector,
    rows(
      (ops, [x, w]) =>
        () =>
          ops.rmsNorm(x, w, 1e-5, out, 1)
    ),
    3,
    3
  ],
  ['residualMix', vector, rows((ops, s) => () => ops.residualMix(s, s[0], 1e-5, out, 1)), 12, 12],
  [
    'situGlu',
    vector,
    rows(
      (ops, [g, u], width) =>
        () =>
          ops.situGlu(g, u, { beta: 4, linearBeta: 25 }, out, width)
    ),
    11,
    14
  ],
  [
    'exp',
    vector,
    rows(
      (ops, [x], width) =>
        () =>
          ops.exp(x, out, width)
    ),
    12,
    16
  ],
  [
    'sigmoid',
    vector,
    rows(
      (ops, [x], width) =>
        () =>
          ops.sigmoid(x, out, width)
    ),
    11,
    13
  ],
  [
    'tanh',
    vector,
    rows(
      (ops, [x], width) =>
        () =>
          ops.tanh(x, out, width)
    ),
    13,
    16
  ]
]

const best = (run, calls) => {
  const start = process.hrtime.bigint()
  for (let i = 0; i < calls; i++) run()
  return Number(process.hrtime.bigint() - start) / calls
}

/** Calls that take about a millisecond. */
const callsOf = (run) => {
  run()
  return Math.max(1, Math.round(1e6 / best(run, 3)))
}

const ratioOf = (make, isa, need) => {
  const [slow, fast] = [make('scalar'), make(isa)]
  const [slowCalls, fastCalls] = [callsOf(slow), callsOf(fast)]
  let [slowest, fastest] = [Infinity, Infinity]
  for (let attempt = 0; attempt < ATTEMPTS && !(slowest / fastest >= need); attempt++) {
    for (let round = 0; round < ROUNDS; round++) {
      slowest = Math.min(slowest, best(slow, slowCalls))
      fastest = Math.min(fastest, best(fast, fastCalls))
    }
  }
  return slowest / fastest
}

/** Packages with kernels for several instruction sets; one that is not measured here would be a hole in the gate. */
const stamped = readdirSync(new URL('../packages', import.meta.url)).filter((name) => {
  const folder = new URL(`../packages/${name}/native/`, import.meta.url)
  return existsSync(folder) && readdirSync(folder).some((file) => file.endsWith('_avx2.cc'))
})
// compilers make vectors of synth's integers in the scalar stamp too, so that a ratio says nothing
const known = ['bf16-linear', 'kda', 'mla', 'mxfp4', 'synth', 'vector-ops']
if (stamped.join() !== known.join()) throw new Error(`kernels in ${stamped}, the gate knows ${known}`)

let failures = 0
for (const [name, { supportedIsas }, make, avx2, avx512] of cases) {
  for (const isa of supportedIsas().filter((known) => known !== 'scalar')) {
    if (wanted.length > 0 && !wanted.includes(isa)) continue
    const need = isa === 'avx512' ? avx512 : avx2
    const ratio = ratioOf(make, isa, need)
    if (ratio < need) failures++
    console.log(
      `${ratio < need ? 'FAIL' : 'ok  '}  ${name}, ${isa}: ${ratio.toFixed(1)} × scalar, at least ${need}`
    )
  }
}
process.exitCode = failures === 0 ? 0 : 1
