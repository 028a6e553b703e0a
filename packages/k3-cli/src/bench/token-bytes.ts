import { type K3Config, tensorBytes, tensorGroups } from '@k3/engine/checkpoint'

/** A part of a token's work that is told apart; `orchestration` is all that happens outside native calls and waits. */
export const BLOCKS = [
  'embed',
  'attention',
  'dense',
  'router',
  'latent',
  'shared',
  'experts',
  'residual',
  'lm_head',
  'lookahead',
  'io_wait',
  'orchestration'
] as const

/** The name of a block. */
export type Block = (typeof BLOCKS)[number]

/** Bytes by block; a block that is not there moves none. */
export type BlockBytes = ReadonlyMap<Block, number>

const F32 = 4

/** What a tensor of this name is part of. */
const blockOf = (name: string): Block => {
  if (name.includes('.self_attn.')) return 'attention'
  if (name.includes('.experts.')) return 'experts'
  if (name.includes('.shared_experts.')) return 'shared'
  if (name.includes('.routed_expert_')) return 'latent'
  if (name.includes('.block_sparse_moe.gate.')) return 'router'
  if (name.includes('.mlp.')) return 'dense'
  if (name.includes('.embed_tokens.')) return 'embed'
  return name.includes('lm_head') ? 'lm_head' : 'residual'
}

/**
 * Bytes one token of decoding has to move: every weight of the trunk and of the head once, the experts it is routed to,
 * one row of embeddings, the states of delta attention read and written, the latents of `position` tokens.
 */
export const tokenBytes = (config: K3Config, layers: number, position: number): BlockBytes => {
  const { kda, mla, moe, vocabSize } = config
  const bytes = new Map<Block, number>()
  const add = (block: Block, more: number) => void bytes.set(block, (bytes.get(block) ?? 0) + more)
  for (const { holds, records } of tensorGroups(config, false)) {
    if (holds !== 'model' && Number(holds.slice('layer '.length)) >= layers) continue
    for (const record of records) {
      const block = blockOf(record.name)
      const used = block === 'experts' ? moe.topK / moe.expertCount : block === 'embed' ? 1 / vocabSize : 1
      add(block, used * tensorBytes(record))
    }
  }
  const mlaLayers = mla.layers.filter((layer) => layer < layers).length
  const state = F32 * kda.headCount * kda.headDim * kda.headDim
  add('attention', 2 * (layers - mlaLayers) * state)
  add('attention', mlaLayers * F32 * position * (mla.latentRank + mla.sharedKeyDim))
  return new Map([...bytes].map(([block, sum]) => [block, Math.round(sum)]))
}
