import type { Checkpoint } from './checkpoint/types.js'
import { K3Error } from './errors.js'
import { expertSlotBytes } from './expert-slots.js'
import { modelTensors, tensorBytes, trunkTensors } from './tensor-names.js'

/** One component of the plan, in bytes, and why it is that much. */
export interface MemoryTerm {
  readonly component: string
  readonly bytes: number
  readonly reason: string
}

/** Where the memory of a model goes. `mapped` bytes are file pages the system may drop and read again. */
export interface MemoryPlan {
  readonly terms: readonly MemoryTerm[]
  readonly residentBytes: number
  readonly mappedBytes: number
  /** Experts kept in memory, over all layers. */
  readonly cacheSlots: number
}

/** What the plan may use. */
export interface MemoryBudget {
  /** Memory the system can still give, in bytes. */
  readonly availableBytes: number
  /** Tokens in flight at once. */
  readonly chunkTokens: number
  /** Tokens of context to hold latents for. */
  readonly contextTokens: number
  /** Number of slots asked for; null: as many as fit. */
  readonly cacheSlots: number | null
}

const F32 = 4

/**
 * Divides memory among the parts of a model; pure. The trunk is mapped and costs no memory that the system could not
 * take back, but the expert cache leaves room for it.
 * @throws ERR_K3_MEMORY when the smallest cache, one token's experts, does not fit
 * @throws ERR_K3_CACHE_SLOTS when fewer slots than one token needs are asked for
 */
export const planMemory = (checkpoint: Checkpoint, budget: MemoryBudget): MemoryPlan => {
  const { config, plan } = checkpoint
  const { kda, mla, moe } = config
  const moeLayers = plan.filter(({ ffn }) => ffn === 'moe')
  const kdaLayers = plan.filter(({ mixer }) => mixer === 'kda').length
  const width = kda.headCount * kda.headDim
  const kdaBytes = kdaLayers * F32 * (width * kda.headDim + 3 * (kda.convTaps - 1) * width)
  const latentBytes =
    (plan.length - kdaLayers) * budget.contextTokens * F32 * (mla.latentRank + mla.sharedKeyDim)
  const scratchBytes = budget.chunkTokens * scratchBytesPerToken(checkpoint)
  const fixed = kdaBytes + latentBytes + scratchBytes
  const trunk = [...modelTensors(config), ...plan.flatMap((layer) => trunkTensors(config, layer))]
  const trunkBytes = trunk.reduce((sum, tensor) => sum + tensorBytes(tensor), 0)
  const slotBytes =
    moeLayers.length === 0 ? 0 : expertSlotBytes(checkpoint.experts(moeLayers[0]!.index).bytes)
  const cacheSlots = chooseSlots(budget, {
    fixed,
    trunkBytes,
    slotBytes,
    experts: moeLayers.length * moe.expertCount,
    topK: moe.topK
  })
  const terms: MemoryTerm[] = [
    {
      component: 'KDA states',
      bytes: kdaBytes,
      reason: `${kdaLayers} layers, a matrix a head and the convolution tails`
    },
    { component: 'MLA latents', bytes: latentBytes, reason: `${budget.contextTokens} tokens of context` },
    { component: 'scratch', bytes: scratchBytes, reason: `${budget.chunkTokens} tokens in flight` },
    {
      component: 'expert cache',
      bytes: cacheSlots * slotBytes,
      reason: `${cacheSlots} slots of ${slotBytes} bytes`
    }
  ]
  return { terms, residentBytes: fixed + cacheSlots * slotBytes, mappedBytes: trunkBytes, cacheSlots }
}

interface SlotInputs {
  readonly fixed: number
  readonly trunkBytes: number
  readonly slotBytes: number
  readonly experts: number
  readonly topK: number
}

const chooseSlots = (
  budget: MemoryBudget,
  { fixed, trunkBytes, slotBytes, experts, topK }: SlotInputs
): number => {
  if (experts === 0) return 0
  const { cacheSlots, availableBytes } = budget
  if (cacheSlots !== null) {
    if (Number.isSafeInteger(cacheSlots) && cacheSlots >= topK) return Math.min(cacheSlots, experts)
    const message = `a token uses ${topK} experts at once, so the cache needs at least ${topK} slots, got ${cacheSlots}`
    throw new K3Error('ERR_K3_CACHE_SLOTS', message, { field: 'cacheSlots', have: cacheSlots, need: topK })
  }
  const free = availableBytes - fixed
  const smallest = topK * slotBytes
  if (free < smallest) {
    const message = `${availableBytes} bytes of memory are free; states, scratch and the experts of one token need ${fixed + smallest}`
    throw new K3Error('ERR_K3_MEMORY', message, { have: availableBytes, need: fixed + smallest })
  }
  // the trunk is read for every token, an expert for few: its pages come first, half of what is left stays free
  const forExperts = Math.max(smallest, (free - trunkBytes) / 2)
  return Math.min(experts, Math.floor(forExperts / slotBytes))
}

/** Rows of the widest layer kinds, residual stream and blocks included. */
const scratchBytesPerToken = ({ config }: Checkpoint): number => {
  const { hiddenSize, kda, mla, moe, denseIntermediateSize, layerCount, residualBlockSize } = config
  const stream = (4 + Math.ceil(layerCount / residualBlockSize)) * hiddenSize
  const kdaRows = 6 * kda.headCount * kda.headDim
  const mlaRows = mla.headCount * (mla.nopeDim + mla.sharedKeyDim + 2 * mla.valueDim) + mla.queryRank
  const shared = 2 * Math.max(denseIntermediateSize, moe.sharedExpertCount * moe.intermediateSize)
  const routed = moe.topK * (moe.latentSize + moe.intermediateSize) + 2 * moe.latentSize + moe.expertCount
  return F32 * (stream + kdaRows + mlaRows + shared + routed)
}
