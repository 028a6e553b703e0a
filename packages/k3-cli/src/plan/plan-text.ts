import type { MemoryPlan } from '@k3/engine/memory'
import { grouped, table } from '../inspect/table.js'

const inGB = (bytes: number): string => `${(bytes / 1e9).toFixed(2)} GB`

const share = (part: number): string => `${(100 * part).toFixed(1)} %`

const trunkText = ({ trunk }: MemoryPlan): string => {
  if (trunk.mode === 'mmap') return 'trunk mapped'
  if (trunk.mode === 'resident') return 'trunk resident'
  return `trunk streamed, ${trunk.pinnedLayers.length} layers pinned`
}

/** The plan in a line, for a run. */
export const memoryNote = (plan: MemoryPlan): string => {
  const { budget, plannedBytes, cacheSlots, contextTokens, chunkTokens } = plan
  return (
    `memory ${inGB(plannedBytes)} of ${inGB(budget.bytes)} (${budget.reason}): ${trunkText(plan)}, ` +
    `${cacheSlots} expert slots, ${contextTokens} tokens of context, ${chunkTokens} in flight`
  )
}

/** The plan for people: a line for each component, then what it means. */
export const planText = (plan: MemoryPlan): string => {
  const { budget, terms, plannedBytes, smallestBytes, forecast } = plan
  const read = forecast.trunkReadBytes + forecast.headReadBytes + forecast.expertReadBytes
  const rows = terms.map(({ component, bytes, reason }) => [component, bytes, reason])
  const unused = budget.bytes - plannedBytes
  return [
    `budget ${grouped(budget.bytes)} bytes (${budget.reason}); the smallest that works is ${grouped(smallestBytes)}\n\n`,
    table(['component', 'bytes', 'why'], [...rows, ['unused', unused, 'no part has a use for it']]),
    `\nA token reads ${inGB(read)}: ${inGB(forecast.trunkReadBytes)} of trunk, ${inGB(forecast.headReadBytes)} of head, `,
    `${inGB(forecast.expertReadBytes)} of experts at ${share(forecast.hitRate)} hits expected of ${forecast.policy}.\n`,
    `It takes ${forecast.diskSeconds.toFixed(2)} s of disk, ${forecast.memorySeconds.toFixed(2)} s of memory and `,
    `${forecast.computeSeconds.toFixed(2)} s of compute, so about ${forecast.secondsPerToken.toFixed(2)} s/token; `,
    `the ${forecast.bindsOn} binds.\n`
  ].join('')
}

/** The plan as `--json` prints it. Sizes in bytes, times in seconds. */
export const planObject = (plan: MemoryPlan): object => {
  const { budget, trunk, forecast } = plan
  return {
    budget_bytes: budget.bytes,
    budget_reason: budget.reason,
    planned_bytes: plan.plannedBytes,
    smallest_bytes: plan.smallestBytes,
    terms: plan.terms,
    trunk: {
      mode: trunk.mode,
      pinned_layers: trunk.pinnedLayers,
      ring_layers: trunk.ringLayers,
      head_rows: trunk.headRows
    },
    cache_slots: plan.cacheSlots,
    context_tokens: plan.contextTokens,
    chunk_tokens: plan.chunkTokens,
    prefix_cache_bytes: plan.prefixCacheBytes,
    forecast: {
      trunk_read_bytes: forecast.trunkReadBytes,
      head_read_bytes: forecast.headReadBytes,
      expert_read_bytes: forecast.expertReadBytes,
      hit_rate: forecast.hitRate,
      policy: forecast.policy,
      disk_seconds: forecast.diskSeconds,
      memory_seconds: forecast.memorySeconds,
      compute_seconds: forecast.computeSeconds,
      seconds_per_token: forecast.secondsPerToken,
      binds_on: forecast.bindsOn
    }
  }
}
