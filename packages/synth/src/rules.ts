import { SynthError } from './errors.js'
import type { Geometry } from './geometry.js'

/**
 * How the words of a tensor become its bytes (fixtures/SYNTH.md §2). `raw`: the words as they are. `scale`: bytes from
 * `low` to `low + 4`. `affine`: values `(offset + slope * n) * 2^exponent` for odd n in ±65535, the first `live`
 * elements of them, +0 after.
 */
export type Rule =
  | { readonly kind: 'raw' }
  | { readonly kind: 'scale'; readonly low: number }
  | {
      readonly kind: 'affine'
      readonly offset: number
      readonly slope: number
      readonly exponent: number
      readonly live: number
    }

const EVERYTHING = Number.MAX_SAFE_INTEGER
const affine = (offset: number, slope: number, exponent: number, live = EVERYTHING): Rule => ({
  kind: 'affine',
  offset,
  slope,
  exponent,
  live
})

const NORM = affine(1 << 18, 1, -18) // 1 ± 0.25
const CONV = affine(0, 96, -23) // ± 0.75
const CONV_SMALL = affine(0, 96, -32) // ± 0.0015: makes the epsilon of the L2 norm visible
const LATENT_SMALL = 32 // makes the epsilon of the MLA latent norms visible

/** Tensors with one rule everywhere; layer tensors by the part of the name after the layer number. */
const FIXED: Readonly<Record<string, Rule>> = {
  'language_model.model.embed_tokens.weight': affine(0, 72, -27), // ± 0.0352
  'language_model.model.norm.weight': NORM,
  'language_model.model.output_attn_res_norm.weight': NORM,
  'input_layernorm.weight': NORM,
  'post_attention_layernorm.weight': NORM,
  'self_attention_res_norm.weight': NORM,
  'mlp_res_norm.weight': NORM,
  'self_attn.q_a_layernorm.weight': NORM,
  'self_attn.kv_a_layernorm.weight': NORM,
  'block_sparse_moe.routed_expert_norm.weight': NORM,
  'self_attn.v_conv1d.weight': CONV,
  'self_attn.dt_bias': affine(-2621440, 56, -20), // -2.5 ± 3.5
  'self_attn.o_norm.weight': affine(1 << 22, 15, -22), // 1 ± 0.234, 23 significant bits
  'block_sparse_moe.gate.e_score_correction_bias': affine(0, 77, -24) // ± 0.3
}

/** Matrices, by gain: 4096 gives outputs of variance 1 for inputs of variance 1. */
const GAIN: Readonly<Record<string, number>> = {
  'language_model.lm_head.weight': 8192,
  'language_model.model.output_attn_res_proj.weight': 4096,
  'self_attention_res_proj.weight': 4096,
  'mlp_res_proj.weight': 4096,
  'self_attn.q_proj.weight': 4096,
  'self_attn.k_proj.weight': 4096,
  'self_attn.v_proj.weight': 4096,
  'self_attn.b_proj.weight': 4096,
  'self_attn.f_a_proj.weight': 4096,
  'self_attn.f_b_proj.weight': 4096,
  'self_attn.g_proj.weight': 2048,
  'self_attn.o_proj.weight': 256,
  'self_attn.q_a_proj.weight': 4096,
  'self_attn.q_b_proj.weight': 4096,
  'self_attn.kv_a_proj_with_mqa.weight': 4096,
  'self_attn.kv_b_proj.weight': 4096,
  'mlp.gate_proj.weight': 16384,
  'mlp.up_proj.weight': 65536,
  'mlp.down_proj.weight': 12,
  'block_sparse_moe.gate.weight': 4096,
  'block_sparse_moe.routed_expert_down_proj.weight': 4096,
  'block_sparse_moe.routed_expert_up_proj.weight': 128,
  'block_sparse_moe.shared_experts.gate_proj.weight': 4096,
  'block_sparse_moe.shared_experts.up_proj.weight': 16384,
  'block_sparse_moe.shared_experts.down_proj.weight': 64
}

const LAYER = /^language_model\.model\.layers\.([0-9]+)\.(.+)$/
const EXPERT = /^block_sparse_moe\.experts\.[0-9]+\.(w[123])\.weight_(packed|scale)$/

/**
 * The rule of a tensor of the text model (fixtures/SYNTH.md §3).
 * @param shape as stored: the last dimension of a matrix is its columns
 * @throws ERR_SYNTH_TENSOR for a name the formula does not cover
 */
export function ruleFor(name: string, shape: readonly number[], geometry: Geometry): Rule {
  const inLayer = LAYER.exec(name)
  const [layer, leaf] = inLayer === null ? [-1, name] : [Number(inLayer[1]), inLayer[2]!]
  const expert = EXPERT.exec(leaf)
  if (expert !== null) return expert[2] === 'packed' ? { kind: 'raw' } : scaleRule(layer, expert[1]!, shape)
  const exception = exceptionFor(layer, leaf, geometry)
  if (exception !== undefined)
    return typeof exception === 'number' ? linear(exception, shape.at(-1)!) : exception
  if (Object.hasOwn(FIXED, leaf)) return FIXED[leaf]!
  if (Object.hasOwn(GAIN, leaf)) return linear(GAIN[leaf]!, shape.at(-1)!)
  throw new SynthError('ERR_SYNTH_TENSOR', name, `the formula has no rule for a tensor named '${name}'`)
}

/** Tensors whose rule depends on the layer or on the geometry: a rule, or the gain of a matrix. */
function exceptionFor(layer: number, leaf: string, geometry: Geometry): Rule | number | undefined {
  switch (leaf) {
    case 'self_attn.A_log':
      return affine(1258291, 48, -22, geometry.kda_num_heads) // 0.3 ± 0.75
    case 'self_attn.q_conv1d.weight':
    case 'self_attn.k_conv1d.weight':
      return layer === 1 ? CONV_SMALL : CONV
    case 'self_attn.q_a_proj.weight':
    case 'self_attn.kv_a_proj_with_mqa.weight':
      return layer === 3 ? LATENT_SMALL : undefined
    default:
      return undefined
  }
}

function scaleRule(layer: number, matrix: string, shape: readonly number[]): Rule {
  const columns = 32 * shape.at(-1)!
  const hot = layer % 4 === 1 ? 2 : 0 // layers whose experts saturate
  const bump = { w1: hot, w2: layer === 2 ? -8 : 0, w3: 2 + hot }[matrix]!
  const bitLength = 32 - Math.clz32(columns)
  return { kind: 'scale', low: 117 + ((12 - bitLength) >> 1) + bump }
}

/**
 * Uniform values of standard deviation gain/4096/sqrt(columns), the half-width cut to 7 bits. In integers: the square
 * root needs more than the 53 bits of a double.
 */
export function linear(gain: number, columns: number): Rule {
  const root = squareRoot(((3n * BigInt(gain) * BigInt(gain)) << 48n) / BigInt(columns))
  const shift = root.toString(2).length - 7
  return affine(0, Number(root >> BigInt(shift)), shift - 52)
}

/** floor(sqrt(n)), by Newton's iteration from above. */
function squareRoot(n: bigint): bigint {
  let root = 1n << BigInt(Math.ceil(n.toString(2).length / 2))
  for (;;) {
    const next = (root + n / root) >> 1n
    if (next >= root) return root
    root = next
  }
}
