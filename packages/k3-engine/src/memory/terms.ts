import type { Division } from './divide.js'
import type { ModelSizes } from './model-sizes.js'

/** One component of the plan, in bytes, and why it is that much. */
export interface MemoryTerm {
  readonly component: string
  readonly bytes: number
  readonly reason: string
}

/** What the weights have to leave room for. */
export interface FixedTerms {
  readonly terms: readonly MemoryTerm[]
  readonly bytes: number
  readonly contextTokens: number
  readonly chunkTokens: number
  readonly prefixCacheBytes: number
}

/** The part of a request these terms depend on; null: by the budget. */
export interface FixedRequest {
  readonly threads: number
  readonly contextTokens: number | null
  readonly chunkTokens: number | null
  readonly prefixCacheBytes: number | null
  readonly speculates: boolean
}

const NODE = 96e6 // Node 20 with the addons of the engine: 55 MB at the start, the rest is compiled code and garbage
const RECORD = 600 // a tensor of a header while the checkpoint is checked, measured on 497,220 of them
const VOCABULARY_ENTRY = 128 // bytes and ranks of a token, measured on 163,840
const THREAD = 256e3 // stack and allocator arena in use
const RESERVE = 48e6 // and a hundredth: what the allocator holds back, and what garbage waits for its collection
const RESERVE_SHARE = 1 / 100
const MOST_RESERVE = 1e9

// What a part may take of the budget when the request leaves it open, and the bounds of that.
const CONTEXT = { share: 1 / 16, least: 1024, most: 32_768 }
const CHUNK = { share: 1 / 32, least: 16, most: 256 }
const PREFIX_CACHE = { share: 1 / 16, most: 4e9 }

/** Everything but trunk and experts. `budget` is what shares are taken of; the terms grow more slowly than it. */
export const fixedTerms = (
  sizes: ModelSizes,
  contextLength: number,
  request: FixedRequest,
  budget: number
): FixedTerms => {
  const { threads, speculates } = request
  const prefixCacheBytes =
    request.prefixCacheBytes === null
      ? Math.floor(Math.min(PREFIX_CACHE.most, budget * PREFIX_CACHE.share))
      : request.prefixCacheBytes
  const context = share(
    request.contextTokens,
    { ...CONTEXT, most: Math.min(CONTEXT.most, contextLength) },
    {
      budget,
      each: sizes.latentsPerToken
    }
  )
  const chunk = share(request.chunkTokens, CHUNK, { budget, each: sizes.scratchPerToken })
  const states = speculates ? 2 : 1
  const rounding = context.rounding + chunk.rounding
  const reserve = RESERVE + Math.floor(Math.min(MOST_RESERVE, budget * RESERVE_SHARE)) + rounding
  const terms: MemoryTerm[] = [
    { component: 'Node', bytes: NODE, reason: 'the runtime, code and its garbage' },
    {
      component: 'headers and vocabulary',
      bytes: sizes.records * RECORD + sizes.vocab * VOCABULARY_ENTRY,
      reason: `${sizes.records} tensors, ${sizes.vocab} tokens`
    },
    {
      component: 'vectors',
      bytes: 2 * sizes.vectors,
      reason: 'norms, convolutions and biases as f32, bound and as read'
    },
    {
      component: 'KDA states',
      bytes: states * sizes.kdaStates,
      reason: speculates
        ? 'of a sequence, and where its drafts began'
        : 'of a sequence: a matrix a head, and tails'
    },
    {
      component: 'MLA latents',
      bytes: context.tokens * sizes.latentsPerToken,
      reason: `${context.tokens} tokens of context, ${context.why}`
    },
    {
      component: 'scratch',
      bytes: sizes.scratchFixed + chunk.tokens * sizes.scratchPerToken + threads * THREAD,
      reason: `${chunk.tokens} tokens in flight, ${chunk.why}; ${threads} threads`
    },
    { component: 'prefix cache', bytes: prefixCacheBytes, reason: 'set aside for snapshots of sequences' },
    { component: 'reserve', bytes: reserve, reason: 'the allocator, garbage, and a hundredth of the budget' }
  ]
  const bytes = terms.reduce((sum, term) => sum + term.bytes, 0)
  return { terms, bytes, contextTokens: context.tokens, chunkTokens: chunk.tokens, prefixCacheBytes }
}

interface Bounds {
  readonly share: number
  readonly least: number
  readonly most: number
}

/**
 * Whole tokens in a share of the budget. What rounding leaves of the share is not given to anyone else, so that more
 * budget never means less for the weights.
 */
const share = (asked: number | null, bounds: Bounds, { budget, each }: { budget: number; each: number }) => {
  if (asked !== null) return { tokens: asked, rounding: 0, why: 'as asked' }
  const most = Math.max(bounds.least, bounds.most)
  if (each === 0) return { tokens: bounds.most, rounding: 0, why: 'which cost nothing' }
  const bytes = Math.floor(Math.min(most * each, Math.max(bounds.least * each, budget * bounds.share)))
  const tokens = Math.min(bounds.most, Math.floor(bytes / each))
  return {
    tokens,
    rounding: Math.max(0, bytes - tokens * each),
    why: `1/${1 / bounds.share} of the budget at most`
  }
}

/** Trunk and experts as they were divided. */
export const weightTerms = (sizes: ModelSizes, division: Division): MemoryTerm[] => {
  const { trunk, slots, pinnedBytes, ringBytes, tableBytes } = division
  const count = `${trunk.pinnedLayers.length} of ${sizes.layers.length} layers`
  const why = {
    mmap: 'all of it fits: mapped from the shards, nothing is copied',
    resident: 'all of it fits and is read once',
    stream: `${count} stay: a byte of trunk saves a byte of every token`
  }
  const tables = {
    mmap: 'mapped like the trunk',
    resident: 'the head stays; embedding rows are read one by one',
    stream:
      tableBytes > 0
        ? 'the head stays; embedding rows are read one by one'
        : `the head is read ${trunk.headRows} rows at a time`
  }
  return [
    { component: 'trunk', bytes: pinnedBytes, reason: why[trunk.mode] },
    {
      component: 'trunk ring',
      bytes: ringBytes,
      reason:
        ringBytes === 0
          ? 'nothing is streamed'
          : `${trunk.ringLayers} buffers: one is computed with, one is read into`
    },
    { component: 'head and embedding', bytes: tableBytes, reason: tables[trunk.mode] },
    {
      component: 'expert cache',
      bytes: slots * sizes.slot,
      reason:
        slots === sizes.experts
          ? 'every expert'
          : `${slots} of ${sizes.experts} experts: what no whole layer fits into`
    }
  ]
}
