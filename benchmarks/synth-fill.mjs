// Rate at which tensor bytes are made, one thread, no disk: node benchmarks/synth-fill.mjs
import { createFiller, geometryOf, supportedIsas } from '../packages/synth/dist/index.js'

const layer = 'language_model.model.layers.1.'
const tensors = [
  { name: `${layer}self_attn.q_proj.weight`, dtype: 'BF16', shape: [12288, 7168] },
  { name: `${layer}self_attn.dt_bias`, dtype: 'F32', shape: [12288] },
  { name: `${layer}block_sparse_moe.experts.0.w1.weight_packed`, dtype: 'U8', shape: [3072, 1792] },
  { name: `${layer}block_sparse_moe.experts.0.w1.weight_scale`, dtype: 'U8', shape: [3072, 112] }
]
const out = new Uint8Array(16 << 20)
const rounds = 16

console.log('isa,tensor,GB_per_s')
for (const isa of supportedIsas()) {
  const filler = createFiller(geometryOf('full'), 1n, { isa })
  for (const tensor of tensors) {
    filler.fill(tensor, 0, out)
    const start = process.hrtime.bigint()
    for (let round = 0; round < rounds; round++) filler.fill(tensor, 0, out)
    const seconds = Number(process.hrtime.bigint() - start) / 1e9
    console.log(
      `${isa},${tensor.name.split('.').slice(-2).join('.')},${((rounds * out.length) / seconds / 1e9).toFixed(2)}`
    )
  }
}
