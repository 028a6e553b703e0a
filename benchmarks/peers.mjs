// The experts of a token against llama.cpp, in one run: node-llama-cpp ships ggml with MXFP4 kernels, but its API times no
// product by itself. So this writes a small GGUF model of 16 layers whose feed-forward blocks are the 48 matrices of a token
// (3584 x 3072 in MXFP4, hardly any attention, 288 tokens of vocabulary) and times its tokens and prompts of 64. ggml rounds
// activations to 8 bits there; the exact kernels here do not. Both read the same number of bytes a token.
// By hand: installs a pinned node-llama-cpp with its prebuilt binary into a temporary folder (about 730 MB), and removes it.
//   node benchmarks/peers.mjs [threads]
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism, tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { createExpertMlp } from '../packages/mxfp4/dist/index.js'
import { createPool } from '../packages/task-pool/dist/index.js'

const PEER = 'node-llama-cpp@3.22.1'
const threads = Number(process.argv[2] ?? availableParallelism())
const rounds = 12
const [hidden, inner, layers, headDim] = [3584, 3072, 16, 64]
const promptTokens = 64
const matrixBytes = (hidden * inner * 17) / 32
const MXFP4 = 39
const F32 = 0

/** Codes of all kinds and scales around 2^-7; ggml's block is the scale of 32 numbers, then their codes. */
const randomBytes = (length) => {
  const words = new Uint32Array(Math.ceil(length / 4))
  for (let i = 0, state = 1; i < words.length; i++) words[i] = state = Math.imul(state, 1664525) + 1013904223
  return new Uint8Array(words.buffer, 0, length)
}
const blocks = (numbers) => {
  const bytes = randomBytes((numbers / 32) * 17)
  for (let at = 0; at < bytes.length; at += 17) bytes[at] = 114 + (bytes[at] & 3)
  return bytes
}

/** Values of a GGUF header: numbers are u32 unless they are given with a type. */
const string = (text) => {
  const bytes = Buffer.from(text)
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(bytes.length))
  return Buffer.concat([length, bytes])
}
const u32 = (value) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const u64 = (value) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}
const f32 = (value) => {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}
const TYPE = { u32: 4, f32: 6, string: 8, array: 9 }
const list = (type, items) => [TYPE.array, Buffer.concat([u32(type), u64(items.length), ...items])]

const special = ['<unk>', '<s>', '</s>']
const bytesTokens = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`
)
const letters = Array.from({ length: 29 }, (_, i) => String.fromCharCode(97 + i))
const vocabulary = [...special, ...bytesTokens, ...letters]

const metadata = {
  'general.architecture': [TYPE.string, string('llama')],
  'general.name': [TYPE.string, string('experts')],
  'llama.context_length': [TYPE.u32, u32(512)],
  'llama.embedding_length': [TYPE.u32, u32(hidden)],
  'llama.block_count': [TYPE.u32, u32(layers)],
  'llama.feed_forward_length': [TYPE.u32, u32(inner)],
  'llama.attention.head_count': [TYPE.u32, u32(1)],
  'llama.attention.head_count_kv': [TYPE.u32, u32(1)],
  'llama.attention.key_length': [TYPE.u32, u32(headDim)],
  'llama.attention.value_length': [TYPE.u32, u32(headDim)],
  'llama.rope.dimension_count': [TYPE.u32, u32(headDim)],
  'llama.attention.layer_norm_rms_epsilon': [TYPE.f32, f32(1e-5)],
  'llama.vocab_size': [TYPE.u32, u32(vocabulary.length)],
  'tokenizer.ggml.model': [TYPE.string, string('llama')],
  'tokenizer.ggml.tokens': list(TYPE.string, vocabulary.map(string)),
  'tokenizer.ggml.scores': list(
    TYPE.f32,
    vocabulary.map((_, i) => f32(-i))
  ),
  'tokenizer.ggml.token_type': list(
    5,
    vocabulary.map((_, i) => u32(i === 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1))
  ),
  'tokenizer.ggml.bos_token_id': [TYPE.u32, u32(1)],
  'tokenizer.ggml.eos_token_id': [TYPE.u32, u32(2)]
}

const tensors = [
  ['token_embd.weight', MXFP4, [hidden, vocabulary.length]],
  ['output_norm.weight', F32, [hidden]],
  ['output.weight', MXFP4, [hidden, vocabulary.length]],
  ...Array.from({ length: layers }, (_, layer) =>
    [
      ['attn_norm.weight', F32, [hidden]],
      ['attn_q.weight', MXFP4, [hidden, headDim]],
      ['attn_k.weight', MXFP4, [hidden, headDim]],
      ['attn_v.weight', MXFP4, [hidden, headDim]],
      ['attn_output.weight', MXFP4, [headDim, hidden]],
      ['ffn_norm.weight', F32, [hidden]],
      ['ffn_gate.weight', MXFP4, [hidden, inner]],
      ['ffn_up.weight', MXFP4, [hidden, inner]],
      ['ffn_down.weight', MXFP4, [inner, hidden]]
    ].map(([name, type, shape]) => [`blk.${layer}.${name}`, type, shape])
  ).flat()
]

const numbersOf = (shape) => shape.reduce((product, size) => product * size, 1)
const dataOf = (type, shape) => {
  const numbers = numbersOf(shape)
  return type === F32 ? new Uint8Array(new Float32Array(numbers).fill(1).buffer) : blocks(numbers)
}
const aligned = (bytes) => Math.ceil(bytes / 32) * 32

const writeModel = (file) => {
  const out = openSync(file, 'w')
  let [offset, at] = [0, 0]
  const put = (bytes) => {
    at += writeSync(out, bytes)
  }
  put(Buffer.concat([Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(Object.keys(metadata).length)]))
  for (const [key, [type, value]] of Object.entries(metadata))
    put(Buffer.concat([string(key), u32(type), value]))
  for (const [name, type, shape] of tensors) {
    put(Buffer.concat([string(name), u32(shape.length), ...shape.map(u64), u32(type), u64(offset)]))
    offset += aligned(type === F32 ? 4 * numbersOf(shape) : (numbersOf(shape) / 32) * 17)
  }
  put(Buffer.alloc(aligned(at) - at))
  for (const [, type, shape] of tensors) {
    const data = dataOf(type, shape)
    put(data)
    put(Buffer.alloc(aligned(data.length) - data.length))
  }
  closeSync(out)
}

const openPeer = async (folder) => {
  execFileSync('npm', ['install', '--silent', '--no-save', '--ignore-scripts', '--prefix', folder, PEER], {
    stdio: 'inherit'
  })
  const entry = createRequire(path.join(folder, 'package.json')).resolve('node-llama-cpp')
  const { getLlama } = await import(pathToFileURL(entry).href)
  const llama = await getLlama({ gpu: false, build: 'never', maxThreads: threads, progressLogs: false })
  const file = path.join(folder, 'experts.gguf')
  writeModel(file)
  const model = await llama.loadModel({ modelPath: file, gpuLayers: 0 })
  const context = await model.createContext({
    contextSize: 512,
    batchSize: 128,
    threads: { ideal: threads, min: threads }
  })
  const sequence = context.getSequence()
  const seconds = async (work) => {
    const start = performance.now()
    await work()
    return (performance.now() - start) / 1000
  }
  const ids = (count) => Array.from({ length: count }, (_, i) => 259 + (i % letters.length))
  return {
    token: () => seconds(() => sequence.evaluateWithoutGeneratingNewTokens(ids(1))),
    prompt: async () => {
      await sequence.clearHistory()
      return seconds(() => sequence.evaluateWithoutGeneratingNewTokens(ids(promptTokens)))
    },
    close: () => llama.dispose()
  }
}

const openOurs = () => {
  const pool = createPool({ threads })
  const codeBytes = (hidden * inner) / 2
  const region = randomBytes(3 * layers * matrixBytes)
  for (let i = 0; i < 3 * layers; i++) {
    const scales = region.subarray(i * matrixBytes + codeBytes, (i + 1) * matrixBytes)
    for (let s = 0; s < scales.length; s++) scales[s] = 114 + (scales[s] & 3)
  }
  const at = (i) => ({ packed: i * matrixBytes, scale: i * matrixBytes + codeBytes })
  const [w1, w2, w3] = [at(0), at(1), at(2)]
  const layout = { w1Packed: w1.packed, w1Scale: w1.scale, w2Packed: w2.packed, w2Scale: w2.scale }
  Object.assign(layout, { w3Packed: w3.packed, w3Scale: w3.scale })
  const spec = { latent: hidden, inner, topK: layers, beta: 4, linearBeta: 25, layout }
  const mlp = createExpertMlp(spec, region, { pool })
  const z = Float32Array.from({ length: promptTokens * hidden }, (_, i) => Math.sin(i) / 8)
  const out = new Float32Array(promptTokens * hidden)
  // one expert after the other, as the layers of the peer's model
  const run = (tokens) => {
    const start = performance.now()
    for (let layer = 0; layer < layers; layer++) {
      const bases = Float64Array.of(3 * layer * matrixBytes)
      const all = Int32Array.from({ length: tokens }, (_, t) => t)
      mlp.apply(z, { count: 1, bases, starts: Int32Array.of(0, tokens), tokens: all }, out)
    }
    return (performance.now() - start) / 1000
  }
  return { token: async () => run(1), prompt: async () => run(promptTokens), close: () => pool.close() }
}

const folder = mkdtempSync(path.join(tmpdir(), 'k3-peers-'))
const engines = { k3: openOurs(), 'node-llama-cpp': await openPeer(folder) }
const times = new Map()
for (let round = 0; round <= rounds; round++) {
  for (const [name, engine] of Object.entries(engines)) {
    for (const work of ['prompt', 'token']) {
      const took = await engine[work]()
      // the first round pages weights in
      if (round > 0) times.set(`${work},${name}`, [...(times.get(`${work},${name}`) ?? []), took])
    }
  }
}
console.log('work,engine,threads,unit,median,best')
const bytes = 3 * layers * matrixBytes
const flops = 2 * 3 * layers * hidden * inner * promptTokens
for (const [key, seconds] of times) {
  const [work, name] = key.split(',')
  const sorted = seconds.sort((a, b) => a - b)
  const [amount, unit] = work === 'token' ? [bytes, 'GB/s'] : [flops, 'GFLOP/s']
  const rate = (time) => (amount / time / 1e9).toFixed(1)
  const label = work === 'token' ? '48-matrices-of-a-token' : `48-matrices-${promptTokens}-tokens`
  console.log(`${label},${name},${threads},${unit},${rate(sorted[sorted.length >> 1])},${rate(sorted[0])}`)
}
for (const engine of Object.values(engines)) await engine.close()
rmSync(folder, { recursive: true })
process.exit(0)
