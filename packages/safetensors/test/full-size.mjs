// The 96 shard headers and the index of the released model, from docs/spec/schema.json and TENSORS.md §2.
// Plain JavaScript, so that benchmarks/safetensors-headers.mjs runs it without a build; it knows nothing of src/.
import { readFileSync } from 'node:fs'

const LAYERS = 93
const EXPERTS = 896
const VISION_BLOCKS = 27
const DTYPE_ORDER = ['F32', 'BF16', 'U8']
const DTYPE_BYTES = { F32: 4, BF16: 2, U8: 1 }

export const schema = JSON.parse(
  readFileSync(new URL('../../../docs/spec/schema.json', import.meta.url), 'utf8')
)

const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i)

function layersOf({ layers }) {
  if (Array.isArray(layers)) return layers
  if (layers === 'all') return range(0, LAYERS)
  if (layers === 'moe') return range(1, LAYERS)
  return schema.layer_sets[layers]
}

function namesOf(pattern) {
  let names = [pattern.name]
  const expand = (mark, numbers) => {
    if (names[0].includes(mark)) names = names.flatMap((name) => numbers.map((n) => name.replace(mark, n)))
  }
  if (pattern.layers !== undefined) expand('{L}', layersOf(pattern))
  expand('{E}', range(0, EXPERTS))
  expand('{B}', range(0, VISION_BLOCKS))
  return names
}

function shardOf(name) {
  const layer = /\.layers\.(\d+)\./.exec(name)
  if (layer !== null) return Number(layer[1])
  if (name.startsWith('language_model.')) return LAYERS
  return name.startsWith('mm_projector.') ? LAYERS + 1 : LAYERS + 2
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0)

/** Tensors {name, dtype, shape} of each shard, in file order. */
export function fullSizeShards() {
  const shards = schema.shards.map(() => [])
  for (const pattern of schema.tensors) {
    const { dtype, shape } = pattern
    const rank = DTYPE_ORDER.indexOf(dtype)
    for (const name of namesOf(pattern)) shards[shardOf(name)].push({ rank, name, dtype, shape })
  }
  for (const shard of shards) shard.sort((a, b) => a.rank - b.rank || compare(a.name, b.name))
  return shards
}

/** u8 [8 + N] of one shard. */
export function headerOf(shard) {
  let begin = 0
  const members = shard.map(({ name, dtype, shape }) => {
    const end = begin + shape.reduce((product, dim) => product * dim, DTYPE_BYTES[dtype])
    const member = `${JSON.stringify(name)}:${JSON.stringify({ dtype, shape, data_offsets: [begin, end] })}`
    begin = end
    return member
  })
  const text = `{${members.join(',')}}`
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(Math.ceil(text.length / 8) * 8))
  return Buffer.concat([length, Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8))])
}

/** Text of model.safetensors.index.json. */
export function fullSizeIndex(shards) {
  const entries = shards.flatMap((shard, i) => shard.map(({ name }) => [name, schema.shards[i].file]))
  entries.sort((a, b) => compare(a[0], b[0]))
  const lines = entries.map(([name, file]) => `    "${name}": "${file}"`)
  const metadata = `  "metadata": {\n    "total_size": ${schema.totals.tensor_bytes}\n  },\n`
  return `{\n${metadata}  "weight_map": {\n${lines.join(',\n')}\n  }\n}\n`
}
