import type { K3Config, VisionConfig } from './config.js'
import { type LayerPlan, layerPlan } from './layer-plan.js'

/** Dtypes that occur in the checkpoint. */
export type TensorDtype = 'F32' | 'BF16' | 'U8'

/** One tensor of the checkpoint as it has to be. */
export interface TensorRecord {
  readonly name: string
  readonly dtype: TensorDtype
  /** `[out, in]` for matrices */
  readonly shape: readonly number[]
}

/** A dimension is a name resolved by the geometry, or a number that is the same in every geometry. */
type Row<D extends string> = readonly [name: string, dtype: TensorDtype, shape: readonly (D | number)[]]
type TextDims = keyof ReturnType<typeof textDims>
type VisionDims = keyof ReturnType<typeof visionDims>

/** A_log is stored padded with zeros to whole groups of this many heads. */
const A_LOG_GROUP = 128

const textDims = ({ hiddenSize, vocabSize, denseIntermediateSize, kda, mla, moe }: K3Config) => ({
  hidden: hiddenSize,
  vocab: vocabSize,
  dense: denseIntermediateSize,
  // Kimi Delta Attention
  kdaHeads: kda.headCount,
  kdaHeadsPadded: Math.ceil(kda.headCount / A_LOG_GROUP) * A_LOG_GROUP,
  kdaHead: kda.headDim,
  kdaWidth: kda.headCount * kda.headDim,
  taps: kda.convTaps,
  // multi-head latent attention
  queryRank: mla.queryRank,
  latentRank: mla.latentRank,
  latentAndKey: mla.latentRank + mla.sharedKeyDim,
  queries: mla.headCount * (mla.nopeDim + mla.sharedKeyDim),
  keysAndValues: mla.headCount * (mla.nopeDim + mla.valueDim),
  mlaWidth: mla.headCount * mla.valueDim,
  // mixture of experts
  experts: moe.expertCount,
  latent: moe.latentSize,
  inner: moe.intermediateSize,
  sharedInner: moe.sharedExpertCount * moe.intermediateSize,
  latentPacked: moe.latentSize / 2,
  latentGroups: moe.latentSize / 32,
  innerPacked: moe.intermediateSize / 2,
  innerGroups: moe.intermediateSize / 32
})

const visionDims = (vision: VisionConfig, hiddenSize: number) => ({
  hidden: hiddenSize,
  width: vision.hiddenSize,
  qkv: vision.qkvSize,
  qkvTripled: 3 * vision.qkvSize,
  inner: vision.intermediateSize,
  patch: vision.patchSize,
  rows: vision.positionRows,
  columns: vision.positionColumns,
  merged: vision.mergedPatches * vision.hiddenSize
})

const MODEL: readonly Row<TextDims>[] = [
  ['language_model.lm_head.weight', 'BF16', ['vocab', 'hidden']],
  ['language_model.model.embed_tokens.weight', 'BF16', ['vocab', 'hidden']],
  ['language_model.model.norm.weight', 'BF16', ['hidden']],
  ['language_model.model.output_attn_res_norm.weight', 'BF16', ['hidden']],
  ['language_model.model.output_attn_res_proj.weight', 'BF16', [1, 'hidden']]
]

const EVERY_LAYER: readonly Row<TextDims>[] = [
  ['input_layernorm.weight', 'BF16', ['hidden']],
  ['post_attention_layernorm.weight', 'BF16', ['hidden']],
  ['self_attention_res_norm.weight', 'BF16', ['hidden']],
  ['self_attention_res_proj.weight', 'BF16', [1, 'hidden']],
  ['mlp_res_norm.weight', 'BF16', ['hidden']],
  ['mlp_res_proj.weight', 'BF16', [1, 'hidden']]
]

const KDA: readonly Row<TextDims>[] = [
  ['self_attn.q_proj.weight', 'BF16', ['kdaWidth', 'hidden']],
  ['self_attn.k_proj.weight', 'BF16', ['kdaWidth', 'hidden']],
  ['self_attn.v_proj.weight', 'BF16', ['kdaWidth', 'hidden']],
  ['self_attn.q_conv1d.weight', 'F32', ['kdaWidth', 1, 'taps']],
  ['self_attn.k_conv1d.weight', 'F32', ['kdaWidth', 1, 'taps']],
  ['self_attn.v_conv1d.weight', 'F32', ['kdaWidth', 1, 'taps']],
  ['self_attn.A_log', 'F32', ['kdaHeadsPadded']],
  ['self_attn.dt_bias', 'F32', ['kdaWidth']],
  ['self_attn.b_proj.weight', 'BF16', ['kdaHeads', 'hidden']],
  ['self_attn.f_a_proj.weight', 'BF16', ['kdaHead', 'hidden']],
  ['self_attn.f_b_proj.weight', 'BF16', ['kdaWidth', 'kdaHead']],
  ['self_attn.g_proj.weight', 'BF16', ['kdaWidth', 'hidden']],
  ['self_attn.o_norm.weight', 'F32', ['kdaHead']],
  ['self_attn.o_proj.weight', 'BF16', ['hidden', 'kdaWidth']]
]

const MLA: readonly Row<TextDims>[] = [
  ['self_attn.q_a_proj.weight', 'BF16', ['queryRank', 'hidden']],
  ['self_attn.q_a_layernorm.weight', 'BF16', ['queryRank']],
  ['self_attn.q_b_proj.weight', 'BF16', ['queries', 'queryRank']],
  ['self_attn.kv_a_proj_with_mqa.weight', 'BF16', ['latentAndKey', 'hidden']],
  ['self_attn.kv_a_layernorm.weight', 'BF16', ['latentRank']],
  ['self_attn.kv_b_proj.weight', 'BF16', ['keysAndValues', 'latentRank']],
  ['self_attn.g_proj.weight', 'BF16', ['mlaWidth', 'hidden']],
  ['self_attn.o_proj.weight', 'BF16', ['hidden', 'mlaWidth']]
]

const DENSE: readonly Row<TextDims>[] = [
  ['mlp.gate_proj.weight', 'BF16', ['dense', 'hidden']],
  ['mlp.up_proj.weight', 'BF16', ['dense', 'hidden']],
  ['mlp.down_proj.weight', 'BF16', ['hidden', 'dense']]
]

const MOE: readonly Row<TextDims>[] = [
  ['block_sparse_moe.gate.weight', 'BF16', ['experts', 'hidden']],
  ['block_sparse_moe.gate.e_score_correction_bias', 'F32', ['experts']],
  ['block_sparse_moe.routed_expert_down_proj.weight', 'BF16', ['latent', 'hidden']],
  ['block_sparse_moe.routed_expert_norm.weight', 'BF16', ['latent']],
  ['block_sparse_moe.routed_expert_up_proj.weight', 'BF16', ['hidden', 'latent']],
  ['block_sparse_moe.shared_experts.gate_proj.weight', 'BF16', ['sharedInner', 'hidden']],
  ['block_sparse_moe.shared_experts.up_proj.weight', 'BF16', ['sharedInner', 'hidden']],
  ['block_sparse_moe.shared_experts.down_proj.weight', 'BF16', ['hidden', 'sharedInner']]
]

const EXPERT: readonly Row<TextDims>[] = [
  ['w1.weight_packed', 'U8', ['inner', 'latentPacked']],
  ['w1.weight_scale', 'U8', ['inner', 'latentGroups']],
  ['w2.weight_packed', 'U8', ['latent', 'innerPacked']],
  ['w2.weight_scale', 'U8', ['latent', 'innerGroups']],
  ['w3.weight_packed', 'U8', ['inner', 'latentPacked']],
  ['w3.weight_scale', 'U8', ['inner', 'latentGroups']]
]

const VISION_BLOCK: readonly Row<VisionDims>[] = [
  ['norm0.weight', 'BF16', ['width']],
  ['wqkv.weight', 'BF16', ['qkvTripled', 'width']],
  ['wo.weight', 'BF16', ['width', 'qkv']],
  ['norm1.weight', 'BF16', ['width']],
  ['mlp.fc0.weight', 'BF16', ['inner', 'width']],
  ['mlp.fc1.weight', 'BF16', ['width', 'inner']]
]

const VISION_TOWER: readonly Row<VisionDims>[] = [
  ['vision_tower.patch_embed.proj.weight', 'BF16', ['width', 3, 'patch', 'patch']],
  ['vision_tower.patch_embed.pos_emb.weight', 'BF16', ['rows', 'columns', 'width']],
  ['vision_tower.encoder.final_layernorm.weight', 'BF16', ['width']]
]

const PROJECTOR: readonly Row<VisionDims>[] = [
  ['mm_projector.proj.0.weight', 'BF16', ['merged', 'merged']],
  ['mm_projector.proj.2.weight', 'BF16', ['hidden', 'merged']],
  ['mm_projector.post_norm.weight', 'BF16', ['hidden']]
]

/** The released vision tower: what vision tensors are held against when config.json has no `vision_config`. */
const RELEASED_VISION: VisionConfig = {
  blockCount: 27,
  hiddenSize: 1024,
  qkvSize: 1536,
  intermediateSize: 4096,
  patchSize: 14,
  positionRows: 64,
  positionColumns: 64,
  mergedPatches: 4
}

/** The full name of a tensor of one layer: `layerTensorName(3, 'self_attn.o_proj.weight')`. */
export const layerTensorName = (layer: number, suffix: string): string =>
  `language_model.model.layers.${layer}.${suffix}`

/** What the names of the six tensors of one routed expert begin with. */
export const expertName = (layer: number, expert: number): string =>
  layerTensorName(layer, `block_sparse_moe.experts.${expert}`)

/** The full name of a tensor of one routed expert: `expertTensorName(1, 895, 'w2.weight_scale')`. */
export const expertTensorName = (layer: number, expert: number, suffix: string): string =>
  `${expertName(layer, expert)}.${suffix}`

/** The five tensors that belong to no layer. */
export function modelTensors(config: K3Config): TensorRecord[] {
  return bind(MODEL, textDims(config), (name) => name)
}

/** Everything of a layer but its routed experts, under full names. */
export function trunkTensors(config: K3Config, { index, mixer, ffn }: LayerPlan): TensorRecord[] {
  const rows = [...EVERY_LAYER, ...(mixer === 'kda' ? KDA : MLA), ...(ffn === 'moe' ? MOE : DENSE)]
  return bind(rows, textDims(config), (suffix) => layerTensorName(index, suffix))
}

/** The six tensors of any routed expert, under the suffixes {@link expertTensorName} takes. */
export function expertTensors(config: K3Config): TensorRecord[] {
  return bind(EXPERT, textDims(config), (suffix) => suffix)
}

/** Projector and vision tower, in this order, which is the order of their shards. */
export function visionTensors(config: K3Config): { projector: TensorRecord[]; tower: TensorRecord[] } {
  const vision = config.vision === null ? RELEASED_VISION : config.vision
  const dims = visionDims(vision, config.hiddenSize)
  const blocks = Array.from({ length: vision.blockCount }, (_, block) =>
    bind(VISION_BLOCK, dims, (suffix) => `vision_tower.encoder.blocks.${block}.${suffix}`)
  )
  return {
    projector: bind(PROJECTOR, dims, (name) => name),
    tower: [...bind(VISION_TOWER, dims, (name) => name), ...blocks.flat()]
  }
}

/** The tensors of one released shard, in file order. */
export interface TensorGroup {
  /** `layer 0`, …, `model`, `projector`, `vision` */
  readonly holds: string
  readonly records: readonly TensorRecord[]
}

/**
 * Every record of the checkpoint, shard by shard as released: one group a layer, then the model-level tensors, then,
 * when asked for, projector and vision tower. Inside a group F32 comes first, then BF16, then U8, each by name.
 */
export function* tensorGroups(config: K3Config, vision: boolean): Generator<TensorGroup> {
  const expert = expertTensors(config)
  for (const layer of layerPlan(config)) {
    const records = trunkTensors(config, layer)
    if (layer.ffn === 'moe') {
      for (let e = 0; e < config.moe.expertCount; e++) {
        for (const { name, dtype, shape } of expert) {
          records.push({ name: expertTensorName(layer.index, e, name), dtype, shape })
        }
      }
    }
    yield { holds: `layer ${layer.index}`, records: records.sort(byFileOrder) }
  }
  yield { holds: 'model', records: modelTensors(config).sort(byFileOrder) }
  if (!vision) return
  const { projector, tower } = visionTensors(config)
  yield { holds: 'projector', records: projector.sort(byFileOrder) }
  yield { holds: 'vision', records: tower.sort(byFileOrder) }
}

const RANK = { F32: 0, BF16: 1, U8: 2 }

/** The order of records in a released shard. Names are ASCII, so comparing code units compares bytes. */
export function byFileOrder(a: TensorRecord, b: TensorRecord): number {
  if (a.dtype !== b.dtype) return RANK[a.dtype] - RANK[b.dtype]
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

/** Bytes of one element. */
const DTYPE_BYTES: Readonly<Record<TensorDtype, number>> = { F32: 4, BF16: 2, U8: 1 }

/** Size of a tensor's data in bytes. */
export const tensorBytes = ({ dtype, shape }: Pick<TensorRecord, 'dtype' | 'shape'>): number =>
  shape.reduce((product, dim) => product * dim, DTYPE_BYTES[dtype])

function bind<D extends string>(
  rows: readonly Row<D>[],
  dims: Readonly<Record<D, number>>,
  fullName: (name: string) => string
): TensorRecord[] {
  return rows.map(([name, dtype, shape]) => ({
    name: fullName(name),
    dtype,
    shape: shape.map((dim) => (typeof dim === 'number' ? dim : dims[dim]))
  }))
}
