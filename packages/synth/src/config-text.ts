import type { Geometry } from './geometry.js'

// JSON.stringify has one notation for numbers; the released files write some as floats. These stand in for them.
const float = (digits: string): string => `float ${digits}`
const FLOAT = /"float ([^"]*)"/g

const EXCLUDED = [
  're:.*self_attn.*',
  're:.*shared_experts.*',
  're:.*mlp\\.(gate|up|gate_up|down)_proj.*',
  're:.*lm_head.*',
  're:.*vision_tower.*',
  're:.*mm_projector.*'
]

const QUANTIZATION = {
  config_groups: {
    group_0: {
      format: 'mxfp4-pack-quantized',
      input_activations: null,
      output_activations: null,
      targets: ['Linear'],
      weights: {
        actorder: null,
        block_structure: null,
        dynamic: false,
        group_size: 32,
        num_bits: 4,
        observer: 'minmax',
        observer_kwargs: {},
        scale_dtype: 'torch.uint8',
        strategy: 'group',
        symmetric: true,
        type: 'float',
        zp_dtype: null
      }
    }
  },
  format: 'mxfp4-pack-quantized',
  global_compression_ratio: null,
  ignore: EXCLUDED,
  kv_cache_scheme: null,
  quant_method: 'compressed-tensors',
  quantization_status: 'compressed'
}

/** config.json of a synthetic checkpoint: official field names and order, floats written as such, one final newline. */
export function configText(geometry: Geometry): string {
  const vocab = geometry.vocab_size
  const bos = vocab - 256
  const eos = vocab - 254
  const pad = vocab - 1
  const config = {
    architectures: ['KimiK3ForConditionalGeneration'],
    bos_token_id: bos,
    dtype: 'bfloat16',
    eos_token_id: eos,
    model_type: 'kimi_k3',
    pad_token_id: pad,
    text_config: textConfig(geometry, { bos, eos, pad }),
    tie_word_embeddings: false
  }
  return `${JSON.stringify(config, null, 2).replace(FLOAT, '$1')}\n`
}

function textConfig(g: Geometry, ids: { bos: number; eos: number; pad: number }): object {
  return {
    activation_situ_beta: float('4.0'),
    activation_situ_linear_beta: float('25.0'),
    architectures: ['KimiLinearForCausalLM'],
    attn_res_block_size: g.attn_res_block_size,
    bos_token_id: ids.bos,
    dtype: 'bfloat16',
    eos_token_id: ids.eos,
    first_k_dense_replace: 1,
    hidden_act: 'situ',
    hidden_size: g.hidden_size,
    intermediate_size: g.intermediate_size,
    kv_lora_rank: g.kv_lora_rank,
    latent_moe_use_norm: true,
    linear_attn_config: linearAttention(g),
    max_position_embeddings: 1048576,
    mla_use_nope: true,
    mla_use_output_gate: true,
    model_type: 'kimi_linear',
    moe_intermediate_size: g.moe_intermediate_size,
    moe_layer_freq: 1,
    moe_renormalize: true,
    moe_router_activation_func: 'sigmoid',
    num_attention_heads: g.num_attention_heads,
    num_expert_group: 1,
    num_experts: g.num_experts,
    num_experts_per_token: g.num_experts_per_token,
    num_hidden_layers: g.num_hidden_layers,
    num_key_value_heads: g.num_attention_heads,
    num_nextn_predict_layers: 0,
    num_shared_experts: g.num_shared_experts,
    pad_token_id: ids.pad,
    q_lora_rank: g.q_lora_rank,
    qk_nope_head_dim: g.qk_nope_head_dim,
    qk_rope_head_dim: g.qk_rope_head_dim,
    quantization_config: QUANTIZATION,
    rms_norm_eps: float('1e-05'),
    routed_expert_hidden_size: g.routed_expert_hidden_size,
    routed_scaling_factor: float('1.0'),
    tie_word_embeddings: false,
    topk_group: 1,
    topk_method: 'noaux_tc',
    use_cache: true,
    use_grouped_topk: true,
    v_head_dim: g.v_head_dim,
    vocab_size: g.vocab_size
  }
}

function linearAttention(g: Geometry): object {
  const every = Array.from({ length: g.num_hidden_layers }, (_, i) => i + 1)
  return {
    full_attn_layers: g.full_attn_layers,
    gate_lower_bound: float('-5.0'),
    head_dim: g.kda_head_dim,
    kda_layers: every.filter((layer) => !g.full_attn_layers.includes(layer)),
    num_heads: g.kda_num_heads,
    short_conv_kernel_size: g.short_conv_kernel_size,
    use_full_rank_gate: true
  }
}
