import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { createPool } from '@k3/task-pool'
import { loadTokenizer, type Tokenizer } from '@k3/tokenizer'
import { openReader, type Reader } from '@k3/uring'
import { bindDecoder, type DecoderSources } from './bind-decoder.js'
import { cachePressure } from './cache-pressure.js'
import { openCheckpoint } from './checkpoint/open-checkpoint.js'
import { shardCopies } from './checkpoint/shard-copies.js'
import type { Checkpoint } from './checkpoint/types.js'
import { K3Error } from './errors.js'
import { ExpertMlps } from './expert-mlps.js'
import { DiskExperts, NO_EXPERT_TRAFFIC } from './experts.js'
import type { LayerPlan } from './layer-plan.js'
import { readNumaNodes, weightNodes } from './memory/numa.js'
import { Model } from './model.js'
import { type CustomParts, DEFAULT_POLICY, type ModelOptions } from './model-options.js'
import { openTrunk } from './open-trunk.js'
import { planOptions } from './plan-options.js'
import { identityOf } from './session-file/identity.js'
import { ShardGuard } from './shard-guard.js'
import { watchReads } from './watch-reads.js'

// The router's own limit.
const MOST_PREDICTED = 256

/**
 * Opens a checkpoint folder: config.json, shards, and the tokenizer files when they are there. Every tensor's name,
 * dtype and shape is checked first. Memory is divided as `ram` allows: `model.memory` says how.
 * @throws ERR_K3_CONFIG_*, ERR_K3_TENSORS, ERR_K3_EXPERT_LAYOUT, ERR_SAFETENSORS_*, ERR_TOKENIZER_* for a bad folder
 * @throws ERR_K3_MEMORY, ERR_K3_CACHE_SLOTS, ERR_K3_OPTION for options that cannot be met
 * @throws ERR_K3_SHARD_CHANGED when a shard goes away meanwhile
 */
export const openModel = async (dir: string, options: ModelOptions = {}): Promise<Model> => {
  checkKinds(options)
  const folders = [
    ...new Set([dir, ...(options.also === undefined ? [] : options.also)].map((one) => path.resolve(one)))
  ]
  const checkpoint = await openCheckpoint(folders[0]!, folders.slice(1))
  const copies = await shardCopies(checkpoint.files, folders)
  const guard = new ShardGuard(copies.flat().filter((file) => file !== null))
  const plan = firstLayers(checkpoint, options.layers)
  const tokenizer = openTokenizer(dir, checkpoint)
  const threads = wholeNumber('threads', options.threads, availableParallelism())
  const memory = planOptions(checkpoint, plan, options, threads)
  const { chunkTokens } = memory
  const { nodes, notices } = nodesOf(options)
  const { backend = 'auto', direct = 'auto', expertActivations = 'exact', onRead } = options
  const pool = createPool({ threads })
  const native = { pool, isa: options.isa === undefined ? ('auto' as const) : options.isa }
  const closers: (() => void | Promise<void>)[] = [() => pool.close()]
  try {
    const disk = openReader(copies, { direct, backend })
    const reader = onRead === undefined ? disk : watchReads(disk, checkpoint.files, onRead)
    closers.unshift(() => reader.close())
    const trunk = openTrunk(memory.trunk, { checkpoint, plan, reader, native, chunkTokens, nodes })
    closers.unshift(() => trunk.close())
    const mlps = new ExpertMlps(checkpoint, native, expertActivations)
    const experts = plan.some(({ ffn }) => ffn === 'moe')
      ? openExperts(checkpoint, reader, { slots: memory.cacheSlots, nodes }, mlps, options)
      : null
    closers.unshift(() => experts?.close())
    const custom = options.parts
    const source = experts === null || custom?.experts === undefined ? experts : custom.experts(experts)
    const weights = custom?.weights === undefined ? trunk : custom.weights(trunk)
    const wrap = custom?.layer === undefined ? null : custom.layer
    const decoder = bindDecoder(checkpoint.config, plan, {
      trunk,
      weights,
      experts: source,
      mlps,
      native,
      chunkTokens,
      wrap,
      lookahead: lookaheadOf(options, checkpoint, experts),
      onSpan: options.onSpan === undefined ? null : options.onSpan
    })
    return new Model({
      config: checkpoint.config,
      decoder,
      tokenizer,
      memory,
      expertActivations,
      traffic: () => ({
        ...(experts === null ? NO_EXPERT_TRAFFIC : experts.traffic()),
        trunkBytesRead: trunk.bytesRead,
        drives: reader.info.drives.map((drive, i) => ({ folder: folders[i]!, ...drive }))
      }),
      cacheSlots: () => (experts === null ? 0 : experts.slots),
      afterRun:
        experts === null ? () => undefined : cachePressure(experts, checkpoint, memory, custom?.pressure),
      notices: [...checkpoint.notices, ...notices],
      backend: describeReader(reader),
      identity: once(() => guard.watch(() => identityOf(checkpoint, plan, expertActivations))),
      verifyShards: () => guard.verify(),
      dispose: () => closeAll(closers)
    })
  } catch (error) {
    await closeAll(closers).catch(() => undefined) // the first failure is the one to tell
    guard.verify(error) // unless a shard that went away meanwhile is the reason
    throw error
  }
}

/** Refuses what is misspelt or of another kind. */
const checkKinds = (options: ModelOptions): void => {
  knownFields('options', options, OPTIONS)
  if (options.parts !== undefined) checkParts(options.parts)
  for (const watcher of ['onSpan', 'onRead'] as const)
    if (options[watcher] !== undefined && typeof options[watcher] !== 'function')
      throw badOption(watcher, 'a function', options[watcher])
  const { also = [], expertActivations = 'exact' } = options
  if (expertActivations !== 'exact' && expertActivations !== 'int8')
    throw badOption('expertActivations', "'exact' or 'int8'", expertActivations)
  if (!Array.isArray(also) || also.some((folder) => typeof folder !== 'string'))
    throw badOption('also', 'an array of folders', also)
}

const checkParts = (parts: CustomParts): void => {
  knownFields('parts', parts, ['policy', ...FACTORIES])
  const { policy = DEFAULT_POLICY } = parts
  if (typeof policy !== 'string' && (typeof policy !== 'object' || policy === null))
    throw badOption('parts.policy', 'an EvictionPolicy or the name of one', policy)
  for (const part of FACTORIES)
    if (parts[part] !== undefined && typeof parts[part] !== 'function')
      throw badOption(`parts.${part}`, 'a function', parts[part])
}

/** How shards are read, e.g. `io_uring, direct`. */
const describeReader = ({ info: { backend, files } }: Reader): string =>
  `${backend}, ${files.every(({ direct }) => direct) ? 'direct' : 'through the page cache'}`

const openExperts = (
  checkpoint: Checkpoint,
  reader: Reader,
  place: { readonly slots: number; readonly nodes: readonly number[] },
  mlps: ExpertMlps,
  { parts }: ModelOptions
): DiskExperts =>
  new DiskExperts(checkpoint, reader, {
    ...place,
    policy: parts?.policy === undefined ? DEFAULT_POLICY : parts.policy,
    inspect: (layer, expert, base) => mlps.validate(layer, expert, base)
  })

const nodesOf = ({ numa = 'auto' }: ModelOptions): ReturnType<typeof weightNodes> => {
  if (!['auto', 'local', 'interleave'].includes(numa))
    throw badOption('numa', 'auto, local or interleave', numa)
  const placed = weightNodes(numa, readNumaNodes())
  if (numa === 'interleave' && placed.nodes.length === 0)
    throw badOption('numa', 'auto or local where the system tells of no nodes', numa)
  return placed
}

/** Who is told what the next layer will probably ask for. */
const lookaheadOf = (
  { lookahead = 0, parts }: ModelOptions,
  { config }: Checkpoint,
  experts: DiskExperts | null
): DecoderSources['lookahead'] => {
  const most = Math.min(MOST_PREDICTED, config.moe.expertCount)
  if (!Number.isSafeInteger(lookahead) || lookahead < 0 || lookahead > most)
    throw badOption('lookahead', `a whole number in 0 … ${most}`, lookahead)
  if (lookahead === 0 || experts === null) return null
  if (parts?.experts !== undefined) throw badOption('lookahead', '0 with experts of your own', lookahead)
  return { count: lookahead, expect: (layer, ids) => experts.expect(layer, ids) }
}

/** Calls every one of them; then throws the first error there was. */
const closeAll = async (closers: readonly (() => void | Promise<void>)[]): Promise<void> => {
  const errors: unknown[] = []
  for (const close of closers) {
    try {
      await close()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}

/** Makes it when it is first asked for, and again after a failure. */
const once = <T>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | null = null
  return () => {
    made ??= make().catch((error: unknown) => {
      made = null
      throw error
    })
    return made
  }
}

const firstLayers = ({ config, plan }: Checkpoint, layers: number | undefined): readonly LayerPlan[] => {
  if (layers === undefined) return plan
  const { layerCount } = config
  if (Number.isSafeInteger(layers) && layers >= 1 && layers <= layerCount) return plan.slice(0, layers)
  throw badOption('layers', `a whole number in 1 … ${layerCount}`, layers)
}

const openTokenizer = (dir: string, { config }: Checkpoint): Tokenizer | null => {
  if (!existsSync(path.join(dir, 'tiktoken.model'))) return null
  const tokenizer = loadTokenizer(dir, { official: isReleasedModel(config) })
  if (tokenizer.vocabSize === config.vocabSize) return tokenizer
  const message = `the tokenizer knows ${tokenizer.vocabSize} ids, config.json says ${config.vocabSize}`
  throw new K3Error('ERR_K3_TOKENIZER_SIZE', message, { have: tokenizer.vocabSize, need: config.vocabSize })
}

/** A folder with the released geometry claims to be Kimi-K3, so its vocabulary has to be the official one. */
const isReleasedModel = ({ layerCount, hiddenSize, vocabSize }: Checkpoint['config']): boolean =>
  layerCount === 93 && hiddenSize === 7168 && vocabSize === 163_840

const OPTIONS = [
  'threads',
  'isa',
  'cacheSlots',
  'chunkTokens',
  'contextTokens',
  'numa',
  'prefixCacheBytes',
  'speculates',
  'ram',
  'layers',
  'expertActivations',
  'trunk',
  'pinnedLayers',
  'ringLayers',
  'lookahead',
  'also',
  'backend',
  'direct',
  'onSpan',
  'onRead',
  'parts'
]
const FACTORIES = ['pressure', 'experts', 'weights', 'layer'] as const

/** A misspelt setting would be ignored without a word. */
const knownFields = (name: string, value: object, known: readonly string[]): void => {
  if (typeof value !== 'object' || value === null) throw badOption(name, 'an object', value)
  const unknown = Object.keys(value).find((field) => !known.includes(field))
  if (unknown !== undefined) throw badOption(name, `an object of ${known.join(', ')}`, unknown)
}

const wholeNumber = (field: string, value: number | undefined, otherwise: number): number => {
  if (value === undefined) return otherwise
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw badOption(field, 'a whole number of at least 1', value)
}

const badOption = (field: string, need: string, have: unknown) =>
  new K3Error('ERR_K3_OPTION', `${field} must be ${need}, got ${String(have)}`, { field, have, need })
