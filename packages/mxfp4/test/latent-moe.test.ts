import { describe, expect, it } from 'vitest'
import { poisoned } from '../../native-kit/test-kit/arrays.js'
import { type Golden, goldens, widened } from '../../native-kit/test-kit/goldens.js'
import { createExpertMlp, supportedIsas } from '../src/index.js'
import { situExact } from '../src/reference.js'
import { betas, packedExpert } from './experts.js'

const parts = ['w1', 'w2', 'w3'].flatMap((w) => [`${w}.weight_packed`, `${w}.weight_scale`])

/** W x for bf16 W [rows, x.length], in double precision. */
const times = (golden: Golden, name: string, x: Float64Array): Float64Array => {
  const weights = widened(golden.tensor<Uint16Array>(name))
  const cols = x.length
  return Float64Array.from({ length: weights.length / cols }, (_, r) =>
    x.reduce((sum, value, c) => sum + weights[r * cols + c]! * value, 0)
  )
}

/** The latent MoE block of docs/spec/SPEC.md §8.3: everything but the experts in double precision, their choice given. */
const block = (golden: Golden, isa: ReturnType<typeof supportedIsas>[number]): Float32Array => {
  const { geometry, layer, T } = golden.row.dims as never as {
    geometry: Record<string, number>
    layer: number
    T: number
  }
  const {
    hidden_size: hidden,
    num_experts: experts,
    num_experts_per_token: topK
  } = geometry as Record<string, number>
  const { routed_expert_hidden_size: latent, moe_intermediate_size: inner } = geometry as Record<
    string,
    number
  >
  const prefix = `language_model.model.layers.${layer}.block_sparse_moe.`
  const each = Array.from({ length: experts! }, (_, e) =>
    packedExpert(parts.map((part) => golden.tensor<Uint8Array>(`${prefix}experts.${e}.${part}`)))
  )
  const size = each[0]!.region.length
  const region = Uint8Array.from(each.flatMap((one) => [...one.region]))
  const spec = { latent: latent!, inner: inner!, topK: topK!, ...betas, layout: each[0]!.layout }
  const mlp = createExpertMlp(spec, region, { isa })
  const x = Array.from({ length: T }, (_, t) =>
    Float64Array.from(golden.tensor('x').subarray(t * hidden!, (t + 1) * hidden!))
  )

  const z = Float32Array.from(
    x.flatMap((row) => [...times(golden, `${prefix}routed_expert_down_proj.weight`, row)])
  )
  const chosen = Int32Array.from(golden.tensor<BigInt64Array>('out.index'), Number)
  const order = [...chosen.keys()].sort((a, b) => chosen[a]! - chosen[b]! || a - b)
  const pairOf = Int32Array.from(chosen.keys(), (choice) => order.indexOf(choice))
  const starts = Int32Array.from(
    { length: experts! + 1 },
    (_, e) => order.filter((choice) => chosen[choice]! < e).length
  )
  const tokens = Int32Array.from(order, (choice) => Math.floor(choice / topK!))
  const pairs = poisoned(chosen.length * latent!)
  mlp.apply(z, { count: experts!, bases: Float64Array.from(each, (_, e) => e * size), starts, tokens }, pairs)
  const routed = poisoned(T * latent!)
  mlp.combine(pairs, pairOf, Float32Array.from(golden.tensor<Float64Array>('out.weight')), routed, T)

  const gain = widened(golden.tensor<Uint16Array>(`${prefix}routed_expert_norm.weight`))
  return Float32Array.from(
    x.flatMap((row, t) => {
      const r = Float64Array.from(routed.subarray(t * latent!, (t + 1) * latent!))
      const scale = 1 / Math.sqrt(r.reduce((sum, v) => sum + v * v, 0) / latent! + 1e-5)
      const up = times(
        golden,
        `${prefix}routed_expert_up_proj.weight`,
        r.map((v, c) => v * scale * gain[c]!)
      )
      const gate = times(golden, `${prefix}shared_experts.gate_proj.weight`, row)
      const linear = times(golden, `${prefix}shared_experts.up_proj.weight`, row)
      const middle = gate.map((g, i) => situExact(g, linear[i]!, betas.beta, betas.linearBeta))
      const shared = times(golden, `${prefix}shared_experts.down_proj.weight`, middle)
      return [...up.map((v, i) => v + shared[i]!)]
    })
  )
}

describe.each(supportedIsas())('experts inside a latent MoE on %s', (isa) => {
  it.each(goldens('latent_moe').map((g) => [g.row.name, g] as const))('agree with %s', (_, golden) => {
    expect(golden.complaint('out.y', block(golden, isa))).toBeNull()
  })
})
