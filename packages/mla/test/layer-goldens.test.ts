import { describe, expect, it } from 'vitest'
import { poisoned } from '../../native-kit/test-kit/arrays.js'
import { type Golden, goldens, widened } from '../../native-kit/test-kit/goldens.js'
import { project } from '../../native-kit/test-kit/project.js'
import { createMla, MlaCache, supportedIsas } from '../src/index.js'

const EPS = 1e-6

const normed = (rows: Float64Array, gain: Float32Array): Float64Array =>
  rows.map((x, i) => {
    const start = i - (i % gain.length)
    const squares = rows.subarray(start, start + gain.length).reduce((sum, v) => sum + v * v, 0)
    return (x / Math.sqrt(squares / gain.length + EPS)) * gain[i % gain.length]!
  })

const layerOf = (golden: Golden, isa: ReturnType<typeof supportedIsas>[number]) => {
  const geometry = golden.row.dims.geometry as unknown as Record<string, number>
  const bf16 = (suffix: string) =>
    golden.tensor<Uint16Array>(
      `language_model.model.layers.${golden.row.dims.layer}.self_attn.${suffix}.weight`
    )
  const of = (suffix: string) => project(golden.tensor('x'), widened(bf16(suffix)), geometry.hidden_size!)
  const low = normed(of('q_a_proj'), widened(bf16('q_a_layernorm')))
  const inputs = {
    queries: Float32Array.from(project(low, widened(bf16('q_b_proj')), geometry.q_lora_rank!)),
    kv: Float32Array.from(of('kv_a_proj_with_mqa')),
    gate: Float32Array.from(of('g_proj'))
  }
  const shape = {
    heads: geometry.num_attention_heads!,
    nopeDim: geometry.qk_nope_head_dim!,
    sharedKeyDim: geometry.qk_rope_head_dim!,
    valueDim: geometry.v_head_dim!,
    latentDim: geometry.kv_lora_rank!,
    normEps: EPS
  }
  const parameters = { kvNorm: widened(bf16('kv_a_layernorm')), kvUp: bf16('kv_b_proj') }
  return { mla: createMla(shape, parameters, { isa }), inputs, output: widened(bf16('o_proj')) }
}

/** A cache over the first `length` rows of the golden. */
const cacheOf = (
  golden: Golden,
  { latentDim, sharedKeyDim }: { latentDim: number; sharedKeyDim: number },
  length: number
) => {
  const row = latentDim + sharedKeyDim
  const rows = new Float32Array(length * row)
  for (let s = 0; s < length; s++) {
    rows.set(golden.tensor('cache_latent').subarray(s * latentDim, (s + 1) * latentDim), s * row)
    rows.set(
      golden.tensor('cache_rope').subarray(s * sharedKeyDim, (s + 1) * sharedKeyDim),
      s * row + latentDim
    )
  }
  return new MlaCache(row, rows, length)
}

describe.each(supportedIsas())('a whole layer on %s', (isa) => {
  it.each(goldens('mla_layer').map((golden) => [golden.row.name, golden] as const))(
    'agrees with %s',
    (_, golden) => {
      const { mla, inputs, output } = layerOf(golden, isa)
      const tokens = golden.row.dims.T!
      const { heads, valueDim, latentDim } = mla.shape
      for (const cached of golden.row.dims.caches as unknown as number[]) {
        const cache = cacheOf(golden, mla.shape, cached)
        const mixed = poisoned(tokens * heads * valueDim)
        mla.forward(inputs, cache, mixed, tokens)
        const y = Float32Array.from(project(mixed, output, heads * valueDim))
        expect(golden.complaint(`out.y_cache_${cached}`, y)).toBeNull()
        const added = cache.rows.slice(cached * cache.rowLength, (cached + tokens) * cache.rowLength)
        const isLatent = (i: number) => i % cache.rowLength < latentDim
        expect(
          golden.complaint(
            'out.new_latent',
            added.filter((_, i) => isLatent(i))
          )
        ).toBeNull()
        expect(
          golden.complaint(
            'out.new_rope',
            added.filter((_, i) => !isLatent(i))
          )
        ).toBeNull()
      }
    }
  )
})
