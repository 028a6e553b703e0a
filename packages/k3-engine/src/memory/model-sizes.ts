import type { K3Config } from '../config.js'
import { expertSlotBytes } from '../expert-slots.js'
import type { LayerPlan } from '../layer-plan.js'
import {
  expertTensors,
  modelTensors,
  type TensorRecord,
  tensorBytes,
  trunkTensors,
  visionTensors
} from '../tensor-names.js'

/** Sizes of a model's parts in bytes, as they follow from its configuration. */
export interface ModelSizes {
  /** Tensors in the headers of the whole checkpoint. */
  readonly records: number
  readonly vocab: number
  /** Norms, convolutions and other vectors, kept as f32. */
  readonly vectors: number
  /** States and tails of all KDA layers, for one sequence. */
  readonly kdaStates: number
  readonly latentsPerToken: number
  readonly scratchPerToken: number
  readonly scratchFixed: number
  /** Trunk of each layer that runs, in pages. */
  readonly layers: readonly number[]
  /** A buffer that a streamed layer, or what a larger one is cut into, fits in; and rows of the head that surely fit. */
  readonly ringBuffer: number
  readonly mostHeadRows: number
  readonly head: number
  readonly embedding: number
  /** Of one expert in the files, and of the slot it needs in memory. */
  readonly expert: number
  readonly slot: number
  /** Experts of all layers that run, and those one token uses. */
  readonly experts: number
  readonly tokenExperts: number
  readonly topK: number
}

const F32 = 4
const PAGE = 4096

/** Runs of bytes wherever they start in their files: whole pages around each; a layer is one run as released. */
const paged = (bytes: number, runs = 1): number => (Math.ceil(bytes / PAGE) + runs) * PAGE
const LAYER_RUNS = 8

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

/** What the parts of a model take. `plan`: the layers that run; `config`: the whole model, whose headers are read. */
export const modelSizes = (config: K3Config, plan: readonly LayerPlan[]): ModelSizes => {
  const { kda, mla, moe, hiddenSize, vocabSize } = config
  const moeLayers = plan.filter(({ ffn }) => ffn === 'moe').length
  const kdaLayers = plan.filter(({ mixer }) => mixer === 'kda').length
  const width = kda.headCount * kda.headDim
  const expert = sum(expertTensors(config).map(tensorBytes))
  const table = 2 * vocabSize * hiddenSize
  const vectors = [...modelTensors(config), ...plan.flatMap((layer) => trunkTensors(config, layer))]
  return {
    records: recordCount(config),
    vocab: vocabSize,
    vectors: sum(vectors.filter(isVector).map(({ shape }) => F32 * shape.reduce((a, b) => a * b, 1))),
    kdaStates: kdaLayers * F32 * width * (kda.headDim + 3 * (kda.convTaps - 1)),
    latentsPerToken: (plan.length - kdaLayers) * F32 * (mla.latentRank + mla.sharedKeyDim),
    scratchPerToken: F32 * scratchRow(config, plan) + moeLayers * 16 * moe.topK + paged(2 * hiddenSize),
    scratchFixed: fixedScratch(config, moeLayers),
    layers: plan.map((layer) => paged(sum(trunkTensors(config, layer).map(tensorBytes)), LAYER_RUNS)),
    ...ringSizes(config, plan),
    head: paged(table),
    embedding: paged(table),
    expert,
    slot: expertSlotBytes(expert),
    experts: moeLayers * moe.expertCount,
    tokenExperts: moeLayers * moe.topK,
    topK: moeLayers === 0 ? 0 : moe.topK
  }
}

const recordCount = (config: K3Config): number => {
  const { projector, tower } = visionTensors(config)
  const moeLayers = config.layerCount - 1
  const expertRecords = moeLayers * config.moe.expertCount * expertTensors(config).length
  // about as many a layer, whatever its kind; what counts is the experts
  return expertRecords + 28 * config.layerCount + projector.length + tower.length
}

/** A layer with experts goes through the ring whole, the dense one in pieces of which its attention may be the largest. */
const ringSizes = (config: K3Config, plan: readonly LayerPlan[]) => {
  const { hiddenSize, denseIntermediateSize, vocabSize } = config
  const oneRow = 2 * (2 * PAGE + 2 * Math.max(hiddenSize, denseIntermediateSize))
  const whole = plan.map((layer) =>
    trunkTensors(config, layer).filter(({ name }) => layer.ffn === 'moe' || name.includes('.self_attn.'))
  )
  const most = (records: (tensors: TensorRecord[]) => TensorRecord[]) =>
    Math.max(0, ...whole.map((tensors) => sum(records(tensors).map(tensorBytes))))
  const matrices = most((tensors) => tensors.filter((tensor) => !isVector(tensor)))
  const rows = Math.floor((Math.max(matrices, oneRow) - 2 * PAGE) / (2 * hiddenSize))
  return {
    ringBuffer: paged(
      Math.max(
        oneRow,
        most((tensors) => tensors)
      ),
      LAYER_RUNS
    ),
    // the head is cut in two at least: all rows at once would mean that it stays
    mostHeadRows: Math.max(1, Math.min(rows, Math.ceil(vocabSize / 2)))
  }
}

const isVector = ({ dtype, shape }: TensorRecord): boolean =>
  dtype === 'F32' || shape.length === 1 || shape[0] === 1

/** Numbers of all the rows that layers share, for one token; the same name and width is the same memory. */
const scratchRow = (config: K3Config, plan: readonly LayerPlan[]): number => {
  const { hiddenSize, layerCount, residualBlockSize } = config
  const stream = (1 + Math.ceil(layerCount / residualBlockSize)) * hiddenSize
  const rows = new Map<string, number>([
    ['residual', hiddenSize],
    ['delta', hiddenSize]
  ])
  for (const { mixer, ffn } of plan) {
    const widths = {
      ...(mixer === 'kda' ? kdaRows : mlaRows)(config),
      ...(ffn === 'moe' ? moeRows : denseRows)(config)
    }
    for (const [name, width] of Object.entries(widths)) rows.set(`${name} ${width}`, width)
  }
  return stream + sum([...rows.values()])
}

const kdaRows = ({ kda }: K3Config): Record<string, number> => {
  const width = kda.headCount * kda.headDim
  return {
    q: width,
    k: width,
    v: width,
    gate: width,
    decay: width,
    mixed: width,
    low: kda.headDim,
    beta: kda.headCount
  }
}

const mlaRows = ({ mla }: K3Config): Record<string, number> => ({
  q: mla.headCount * (mla.nopeDim + mla.sharedKeyDim),
  kv: mla.latentRank + mla.sharedKeyDim,
  gate: mla.headCount * mla.valueDim,
  mixed: mla.headCount * mla.valueDim,
  queryLow: mla.queryRank
})

const denseRows = ({ denseIntermediateSize }: K3Config): Record<string, number> => ({
  gateRow: denseIntermediateSize,
  up: denseIntermediateSize
})

// What the expert op works in beside its rows: at most so many numbers more for each vector it arranges.
const ARRANGED = 143

const moeRows = ({ hiddenSize, moe }: K3Config): Record<string, number> => {
  const shared = moe.sharedExpertCount * moe.intermediateSize
  return {
    logits: moe.expertCount,
    latent: moe.latentSize,
    gateRow: shared,
    up: shared,
    pairs: moe.topK * moe.latentSize,
    routed: moe.latentSize,
    raised: hiddenSize,
    native: moe.latentSize + ARRANGED + moe.topK * (moe.intermediateSize + ARRANGED + 4)
  }
}

// Logits in flight: the model's, the sampler's, the caller's, and rows of drafts that are verified.
const LOGIT_ROWS = 16
// Tokens whose queries the attention prepares together.
const QUERY_TILE = 8

const fixedScratch = ({ mla, moe, vocabSize }: K3Config, moeLayers: number): number => {
  const rank = mla.latentRank
  const attention = mla.headCount * (QUERY_TILE * (2 * rank + mla.sharedKeyDim) + 96)
  return F32 * (LOGIT_ROWS * vocabSize + attention) + moeLayers * 24 * moe.expertCount
}
