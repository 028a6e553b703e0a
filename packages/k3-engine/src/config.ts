import { readLayerLists } from './config-layers.js'
import { checkQuantization } from './config-quantization.js'
import { ConfigSection } from './config-section.js'
import { K3Error } from './errors.js'

/** What config.json says about the decoder, checked, in the engine's own terms. Indices are 0-based, sizes are elements. */
export interface K3Config {
  /** `num_hidden_layers` */
  readonly layerCount: number
  /** `hidden_size`: width of the residual stream */
  readonly hiddenSize: number
  /** `vocab_size` */
  readonly vocabSize: number
  /** `max_position_embeddings`: the longest context, in tokens; there is no position encoding behind it */
  readonly contextLength: number
  /** `rms_norm_eps`: every RMSNorm except the two MLA latent norms */
  readonly rmsNormEps: number
  /** `attn_res_block_size`: layers per residual block */
  readonly residualBlockSize: number
  /** `activation_situ_beta`, `activation_situ_linear_beta` */
  readonly situ: { readonly beta: number; readonly linearBeta: number }
  /** `intermediate_size`: inner width of the dense MLP of layer 0 */
  readonly denseIntermediateSize: number
  /** `linear_attn_config` */
  readonly kda: KdaConfig
  readonly mla: MlaConfig
  readonly moe: MoeConfig
  readonly tokens: TokenIds
  /** `vision_config`; null in a checkpoint of the text decoder alone */
  readonly vision: VisionConfig | null
}

/** Kimi Delta Attention. */
export interface KdaConfig {
  /** `num_heads` */
  readonly headCount: number
  /** `head_dim`: keys and values of one head */
  readonly headDim: number
  /** `short_conv_kernel_size` */
  readonly convTaps: number
  /** `gate_lower_bound`: smallest log-decay, negative */
  readonly gateLowerBound: number
  /** `kda_layers`, made 0-based, ascending */
  readonly layers: readonly number[]
}

/** Gated multi-head latent attention. */
export interface MlaConfig {
  /** `num_attention_heads` */
  readonly headCount: number
  /** `q_lora_rank` */
  readonly queryRank: number
  /** `kv_lora_rank`: the cached latent */
  readonly latentRank: number
  /** `qk_nope_head_dim`: per-head part of queries and keys */
  readonly nopeDim: number
  /** `qk_rope_head_dim`: the key part all heads share, cached after the latent and never rotated */
  readonly sharedKeyDim: number
  /** `v_head_dim` */
  readonly valueDim: number
  /** `full_attn_layers`, made 0-based, ascending */
  readonly layers: readonly number[]
}

/** Latent mixture of experts. */
export interface MoeConfig {
  /** `num_experts` */
  readonly expertCount: number
  /** `num_experts_per_token` */
  readonly topK: number
  /** `num_shared_experts`: stored fused, as one MLP of that many times the expert width */
  readonly sharedExpertCount: number
  /** `routed_expert_hidden_size`: input and output width of a routed expert */
  readonly latentSize: number
  /** `moe_intermediate_size` */
  readonly intermediateSize: number
  /** `moe_renormalize`: selected weights are divided by their sum */
  readonly renormalize: boolean
  /** `routed_scaling_factor` */
  readonly routedScale: number
}

/** Special token ids. */
export interface TokenIds {
  readonly bos: number
  /** every id that ends a message, ascending */
  readonly eos: readonly number[]
  readonly pad: number
}

/** The sizes of the vision tower that its tensors depend on. */
export interface VisionConfig {
  readonly blockCount: number
  readonly hiddenSize: number
  readonly qkvSize: number
  readonly intermediateSize: number
  readonly patchSize: number
  readonly positionRows: number
  readonly positionColumns: number
  /** patches merged into one projector input, rows times columns */
  readonly mergedPatches: number
}

// Far above any real model (comment: the released value), far below what could exhaust memory by a typing error.
const WIDTH = { min: 1, max: 1 << 20 } // 33,792
const HEADS = { min: 1, max: 1 << 14 } // 96
const HEAD_DIM = { min: 1, max: 1 << 14 } // 128
const LAYERS = { min: 1, max: 1024 } // 93
const EXPERTS = { min: 1, max: 1 << 16 } // 896
const VOCAB = { min: 1, max: 1 << 24 } // 163,840
const CONV_TAPS = { min: 1, max: 64 } // 4
const CONTEXT = { min: 1, max: 2 ** 31 - 1 } // 1,048,576

const MXFP4_GROUP = 32

/**
 * Reads the official nested config.json. A field that is missing, of the wrong kind, contradictory, or that asks for
 * arithmetic this engine does not have is refused by name; nothing is defaulted. Unrelated fields are ignored.
 * @param text the file's content
 * @param file the name errors report
 * @throws ERR_K3_CONFIG_EMPTY, ERR_K3_CONFIG_JSON, ERR_K3_CONFIG_OBJECT when it is not one JSON object
 * @throws ERR_K3_CONFIG_MISSING, ERR_K3_CONFIG_TYPE, ERR_K3_CONFIG_INTEGER, ERR_K3_CONFIG_RANGE for a single field
 * @throws ERR_K3_CONFIG_MODEL_TYPE, ERR_K3_CONFIG_UNSUPPORTED, ERR_K3_CONFIG_ACTIVATION, ERR_K3_CONFIG_ROTARY,
 * ERR_K3_CONFIG_EXPERT_GROUPS, ERR_K3_CONFIG_QUANTIZATION for another architecture or variant
 * @throws ERR_K3_CONFIG_LAYER_RANGE, ERR_K3_CONFIG_LAYER_REPEATED, ERR_K3_CONFIG_LAYER_OVERLAP,
 * ERR_K3_CONFIG_LAYER_UNLISTED, ERR_K3_CONFIG_TOP_K, ERR_K3_CONFIG_GROUP_SIZE, ERR_K3_CONFIG_CONTRADICTION
 */
export function parseConfig(text: string, file = 'config.json'): K3Config {
  const top = new ConfigSection(parseObject(text, file), '', file)
  top.fixed('model_type', 'kimi_k3', 'ERR_K3_CONFIG_MODEL_TYPE', 'this engine runs Kimi-K3 only')
  const body = top.section('text_config')
  body.fixed('model_type', 'kimi_linear', 'ERR_K3_CONFIG_MODEL_TYPE', 'this engine runs Kimi-K3 only')
  refuseOtherArithmetic(top, body)
  checkQuantization(body.section('quantization_config'))
  const layerCount = body.integer('num_hidden_layers', LAYERS)
  const linear = body.section('linear_attn_config')
  const layers = readLayerLists(linear, layerCount)
  const vocabSize = body.integer('vocab_size', VOCAB)
  return {
    layerCount,
    hiddenSize: body.integer('hidden_size', WIDTH),
    vocabSize,
    contextLength: body.integer('max_position_embeddings', CONTEXT),
    rmsNormEps: positive(body, 'rms_norm_eps'),
    residualBlockSize: body.integer('attn_res_block_size', LAYERS),
    situ: {
      beta: positive(body, 'activation_situ_beta'),
      linearBeta: positive(body, 'activation_situ_linear_beta')
    },
    denseIntermediateSize: body.integer('intermediate_size', WIDTH),
    kda: readKda(linear, layers.kda),
    mla: readMla(body, layers.mla),
    moe: readMoe(body),
    tokens: readTokenIds(top, body, vocabSize),
    vision: top.has('vision_config') ? readVision(top.section('vision_config')) : null
  }
}

function parseObject(text: string, file: string): object {
  if (text.trim() === '') throw new K3Error('ERR_K3_CONFIG_EMPTY', `${file} is empty`, { file })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause)
    throw new K3Error('ERR_K3_CONFIG_JSON', `${file} is not JSON: ${detail}`, { file, cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new K3Error('ERR_K3_CONFIG_OBJECT', `${file} holds no JSON object at its top`, { file })
  }
  return value
}

/** Field names of this model family that change the arithmetic when set; absent from Kimi-K3. */
const FOREIGN_FIELDS = [
  'rope_scaling',
  'rope_parameters',
  'sliding_window',
  'attention_bias',
  'mlp_bias',
  'attn_logit_softcapping',
  'final_logit_softcapping',
  'logits_scaling',
  'logit_scale',
  'embedding_multiplier',
  'residual_multiplier',
  'attention_multiplier'
]

const LINEAR_FIELDS = [
  'full_attn_layers',
  'gate_lower_bound',
  'head_dim',
  'kda_layers',
  'num_heads',
  'short_conv_kernel_size',
  'use_full_rank_gate'
]

function refuseOtherArithmetic(top: ConfigSection, body: ConfigSection): void {
  body.fixed('hidden_act', 'situ', 'ERR_K3_CONFIG_ACTIVATION', 'the only activation implemented')
  body.fixed('mla_use_nope', true, 'ERR_K3_CONFIG_ROTARY', 'no rotary embedding is implemented')
  for (const name of ['num_expert_group', 'topk_group']) {
    body.fixed(name, 1, 'ERR_K3_CONFIG_EXPERT_GROUPS', 'grouped routing is not implemented')
  }
  const required = [
    ['first_k_dense_replace', 1],
    ['moe_layer_freq', 1],
    ['latent_moe_use_norm', true],
    ['mla_use_output_gate', true],
    ['moe_router_activation_func', 'sigmoid'],
    ['topk_method', 'noaux_tc'],
    ['use_grouped_topk', true],
    ['num_nextn_predict_layers', 0],
    ['tie_word_embeddings', false]
  ] as const
  for (const [name, need] of required) body.fixed(name, need, 'ERR_K3_CONFIG_UNSUPPORTED', 'as in Kimi-K3')
  const linear = body.section('linear_attn_config')
  linear.closed(LINEAR_FIELDS, 'ERR_K3_CONFIG_UNSUPPORTED')
  linear.fixed('use_full_rank_gate', true, 'ERR_K3_CONFIG_UNSUPPORTED', 'as in Kimi-K3')
  if (top.has('tie_word_embeddings') && top.value('tie_word_embeddings') !== false) {
    top.refuse('ERR_K3_CONFIG_CONTRADICTION', 'tie_word_embeddings', false, 'text_config says false')
  }
  for (const name of FOREIGN_FIELDS) {
    if (!body.has(name)) continue
    const value = body.value(name)
    if (value !== null && value !== false) {
      body.refuse(
        'ERR_K3_CONFIG_UNSUPPORTED',
        name,
        'null or no such field',
        'it would change the arithmetic'
      )
    }
  }
}

function positive(section: ConfigSection, name: string): number {
  const value = section.number(name)
  if (value <= 0) section.refuse('ERR_K3_CONFIG_RANGE', name, 'a number above 0')
  return value
}

function readKda(linear: ConfigSection, layers: readonly number[]): KdaConfig {
  const gateLowerBound = linear.number('gate_lower_bound')
  if (gateLowerBound >= 0) linear.refuse('ERR_K3_CONFIG_RANGE', 'gate_lower_bound', 'a number below 0')
  return {
    headCount: linear.integer('num_heads', HEADS),
    headDim: linear.integer('head_dim', HEAD_DIM),
    convTaps: linear.integer('short_conv_kernel_size', CONV_TAPS),
    gateLowerBound,
    layers
  }
}

function readMla(body: ConfigSection, layers: readonly number[]): MlaConfig {
  const mla = {
    headCount: body.integer('num_attention_heads', HEADS),
    queryRank: body.integer('q_lora_rank', WIDTH),
    latentRank: body.integer('kv_lora_rank', WIDTH),
    nopeDim: body.integer('qk_nope_head_dim', HEAD_DIM),
    sharedKeyDim: body.integer('qk_rope_head_dim', HEAD_DIM),
    valueDim: body.integer('v_head_dim', HEAD_DIM),
    layers
  }
  if (body.integer('num_key_value_heads', HEADS) !== mla.headCount) {
    const why = 'num_attention_heads; all heads share one latent'
    body.refuse('ERR_K3_CONFIG_CONTRADICTION', 'num_key_value_heads', mla.headCount, why)
  }
  if (mla.valueDim > mla.nopeDim + mla.sharedKeyDim) {
    const why = 'qk_nope_head_dim + qk_rope_head_dim'
    body.refuse('ERR_K3_CONFIG_CONTRADICTION', 'v_head_dim', `at most ${mla.nopeDim + mla.sharedKeyDim}`, why)
  }
  return mla
}

function readMoe(body: ConfigSection): MoeConfig {
  const expertCount = body.integer('num_experts', EXPERTS)
  const topK = body.integer('num_experts_per_token', EXPERTS)
  if (topK > expertCount) {
    body.refuse('ERR_K3_CONFIG_TOP_K', 'num_experts_per_token', `at most num_experts, ${expertCount}`)
  }
  return {
    expertCount,
    topK,
    sharedExpertCount: body.integer('num_shared_experts', EXPERTS),
    latentSize: wholeGroups(body, 'routed_expert_hidden_size'),
    intermediateSize: wholeGroups(body, 'moe_intermediate_size'),
    renormalize: body.boolean('moe_renormalize'),
    routedScale: positive(body, 'routed_scaling_factor')
  }
}

function wholeGroups(body: ConfigSection, name: string): number {
  const width = body.integer(name, WIDTH)
  if (width % MXFP4_GROUP !== 0) {
    body.refuse(
      'ERR_K3_CONFIG_GROUP_SIZE',
      name,
      `a multiple of ${MXFP4_GROUP}`,
      'MXFP4 scales cover 32 columns'
    )
  }
  return width
}

function readTokenIds(top: ConfigSection, body: ConfigSection, vocabSize: number): TokenIds {
  const bounds = { min: 0, max: vocabSize - 1 }
  const single = (name: string): number => {
    const id = body.integer(name, bounds)
    if (top.has(name) && top.integer(name, bounds) !== id) {
      top.refuse('ERR_K3_CONFIG_CONTRADICTION', name, id, 'text_config says so')
    }
    return id
  }
  return { bos: single('bos_token_id'), eos: readEos(top, body, bounds), pad: single('pad_token_id') }
}

/** The released file states the end token twice; one statement may list more ids than the other, not different ones. */
function readEos(top: ConfigSection, body: ConfigSection, bounds: { min: number; max: number }): number[] {
  const inner = new Set(body.tokenIds('eos_token_id', bounds))
  const outer = new Set(top.has('eos_token_id') ? top.tokenIds('eos_token_id', bounds) : inner)
  const union = new Set([...inner, ...outer])
  if (union.size !== Math.max(inner.size, outer.size)) {
    const need = `the ids of text_config, ${[...inner].join(', ')}`
    top.refuse('ERR_K3_CONFIG_CONTRADICTION', 'eos_token_id', need)
  }
  return [...union].sort((a, b) => a - b)
}

function readVision(section: ConfigSection): VisionConfig {
  const merge = section.integers('merge_kernel_size', HEAD_DIM)
  return {
    blockCount: section.integer('vt_num_hidden_layers', LAYERS),
    hiddenSize: section.integer('vt_hidden_size', WIDTH),
    qkvSize: section.integer('qkv_hidden_size', WIDTH),
    intermediateSize: section.integer('vt_intermediate_size', WIDTH),
    patchSize: section.integer('patch_size', HEAD_DIM),
    positionRows: section.integer('init_pos_emb_height', HEAD_DIM),
    positionColumns: section.integer('init_pos_emb_width', HEAD_DIM),
    mergedPatches: merge.reduce((product, side) => product * side, 1)
  }
}
