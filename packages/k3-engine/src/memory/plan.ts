import { type PolicyName, policyNames } from '@k3/moe-cache'
import type { K3Config } from '../config.js'
import { K3Error } from '../errors.js'
import { layerPlan } from '../layer-plan.js'
import { DEFAULT_POLICY } from '../model-options.js'
import type { TrunkPlacement } from '../trunk-placement.js'
import { type Budget, budgetOf, type Ram } from './budget.js'
import { type DivisionWish, divide, smallestDivision } from './divide.js'
import { type Forecast, forecast, type MachineSpeed } from './forecast.js'
import { type ModelSizes, modelSizes } from './model-sizes.js'
import { fixedTerms, type MemoryTerm, weightTerms } from './terms.js'

/** A machine as the plan sees it. */
export interface Machine extends MachineSpeed {
  /** What this process may have, in bytes, and who says so. */
  readonly usable: { readonly bytes: number; readonly source: string }
}

/** What is asked of a plan. */
export interface PlanRequest {
  readonly ram: Ram
  readonly threads: number
  /** Tokens a sequence may have; null: by the budget. */
  readonly contextTokens: number | null
  /** Prompt tokens that go through a layer together; null: by the budget. */
  readonly chunkTokens: number | null
  /** Experts kept in memory; null: what is left. */
  readonly cacheSlots: number | null
  /** Whose hits are expected; of a policy of your own nothing is known: `lru` finds the least. */
  readonly policy: PolicyName
  /** null: the one that leaves the fewest bytes to be read. */
  readonly trunk: TrunkPlacement['mode'] | TrunkPlacement | null
  /** Set aside for snapshots of sequences; null: by the budget. */
  readonly prefixCacheBytes: number | null
  /** Whether drafts are verified, which keeps a second copy of the KDA states. */
  readonly speculates: boolean
  /** Runs only the first layers. */
  readonly layers: number
}

/** Where the memory of a model goes, and what speed that buys. */
export interface MemoryPlan {
  readonly budget: Budget
  /** Every component; together at most the budget. */
  readonly terms: readonly MemoryTerm[]
  readonly plannedBytes: number
  /** The least budget this model can run with, as asked. */
  readonly smallestBytes: number
  readonly trunk: TrunkPlacement
  /** Experts kept in memory, over all layers. */
  readonly cacheSlots: number
  readonly contextTokens: number
  readonly chunkTokens: number
  readonly prefixCacheBytes: number
  readonly forecast: Forecast
}

/** What a request that leaves everything open is. */
export const openRequest = (config: K3Config): PlanRequest => ({
  ram: 'auto',
  threads: 1,
  contextTokens: null,
  chunkTokens: null,
  cacheSlots: null,
  policy: DEFAULT_POLICY,
  trunk: null,
  prefixCacheBytes: 0,
  speculates: false,
  layers: config.layerCount
})

/**
 * Divides a budget among the parts of a model; pure: the same arguments give the same plan, and nothing is read.
 * @throws ERR_K3_MEMORY when the budget is more than the machine has or less than what was asked for needs; `need` is
 * the least budget that works
 * @throws ERR_K3_CACHE_SLOTS when fewer slots than one token needs are asked for, or more than there are experts
 * @throws ERR_K3_OPTION for a budget that is none, and for a policy that does not exist
 */
export const planMemory = (config: K3Config, machine: Machine, request: PlanRequest): MemoryPlan => {
  const sizes = modelSizes(config, layerPlan(config).slice(0, request.layers))
  const wish = wishOf(sizes, request)
  const budget = budgetOf(request.ram, machine.usable)
  const fixedFor = (bytes: number) => fixedTerms(sizes, config.contextLength, request, bytes)
  const smallestBytes = smallestBudget((bytes) => fixedFor(bytes).bytes + smallestDivision(sizes, wish))
  refuseBudget(budget, machine, smallestBytes)
  const fixed = fixedFor(budget.bytes)
  const division = divide(sizes, wish, budget.bytes - fixed.bytes)
  const terms = [...fixed.terms, ...weightTerms(sizes, division)]
  return {
    budget,
    terms,
    plannedBytes: terms.reduce((sum, { bytes }) => sum + bytes, 0),
    smallestBytes,
    trunk: division.trunk,
    cacheSlots: division.slots,
    contextTokens: fixed.contextTokens,
    chunkTokens: fixed.chunkTokens,
    prefixCacheBytes: fixed.prefixCacheBytes,
    forecast: forecast(sizes, division, machine, request)
  }
}

const wishOf = (sizes: ModelSizes, { trunk, cacheSlots, policy }: PlanRequest): DivisionWish => {
  refuseUnknownPolicy(policy)
  if (cacheSlots === null) return { trunk, slots: null, policy }
  const { topK, experts } = sizes
  if (Number.isSafeInteger(cacheSlots) && cacheSlots >= topK && cacheSlots <= experts)
    return { trunk, slots: cacheSlots, policy }
  const isTooMany = cacheSlots > experts
  const message = isTooMany
    ? `the layers that run have ${experts} experts, so the cache has at most ${experts} slots, got ${cacheSlots}`
    : `a token uses ${topK} experts at once, so the cache needs a whole number of slots, at least ${topK}, got ${cacheSlots}`
  const need = isTooMany ? experts : topK
  throw new K3Error('ERR_K3_CACHE_SLOTS', message, { field: 'cacheSlots', have: cacheSlots, need })
}

const refuseUnknownPolicy = (policy: PolicyName): void => {
  if (policyNames.includes(policy)) return
  const message = `policy must be one of ${policyNames.join(', ')}, got ${String(policy)}`
  throw new K3Error('ERR_K3_OPTION', message, { field: 'policy', have: policy, need: policyNames })
}

// Shares are cut to whole bytes, so what a budget covers can be a few bytes more than what the next one does.
const ROUNDING = 16

/** The least number of bytes from which on a budget covers its own needs, which grow more slowly than it. */
const smallestBudget = (needs: (bytes: number) => number): number => {
  let [low, high] = [0, Number.MAX_SAFE_INTEGER]
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2)
    if (needs(middle) <= middle) high = middle
    else low = middle + 1
  }
  // what no budget covers is named as it is, beyond them all
  return Math.max(low, needs(low)) + ROUNDING
}

const refuseBudget = ({ bytes, reason }: Budget, { usable }: Machine, smallest: number): void => {
  if (bytes > usable.bytes) {
    const message =
      `a budget of ${inGB(bytes)} (${reason}) is more than this machine can give now, ` +
      `${inGB(usable.bytes, Math.floor)} by ${usable.source}; the smallest that works is ${inGB(smallest)}`
    throw new K3Error('ERR_K3_MEMORY', message, { field: 'ram', have: bytes, need: smallest })
  }
  if (bytes >= smallest) return
  const message =
    `a budget of ${inGB(bytes, Math.floor)} (${reason}) is too small for what was asked; ` +
    `the smallest that works is ${inGB(smallest)}`
  throw new K3Error('ERR_K3_MEMORY', message, { field: 'ram', have: bytes, need: smallest })
}

/**
 * Like `3.913 GB`. Rounded up, so that what is named works when it is asked for; down where it is what does not suffice, or
 * the two could read the same.
 */
const inGB = (bytes: number, round = Math.ceil): string => `${(round(bytes / 1e6) / 1e3).toFixed(3)} GB`
