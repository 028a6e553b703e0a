import type { Checkpoint } from './checkpoint/types.js'
import { K3Error } from './errors.js'
import type { LayerPlan } from './layer-plan.js'
import { readMemory } from './memory/available.js'
import { ASSUMED_SPEED } from './memory/forecast.js'
import { type MemoryPlan, planMemory } from './memory/plan.js'
import { DEFAULT_POLICY, type ModelOptions } from './model-options.js'
import { choosePlacement } from './trunk-placement.js'
import { mostHeadRows } from './trunk-segments.js'

/**
 * The memory plan for the options of a model, on this machine as it is now.
 * @throws ERR_K3_OPTION for a number out of range, and what `choosePlacement` and `planMemory` throw
 */
export const planOptions = (
  checkpoint: Checkpoint,
  plan: readonly LayerPlan[],
  options: ModelOptions,
  threads: number
): MemoryPlan => {
  const { config } = checkpoint
  const { ram, trunk, pinnedLayers, ringLayers, cacheSlots = null, speculates = false, parts } = options
  const policy = parts?.policy === undefined ? DEFAULT_POLICY : parts.policy
  const placement = choosePlacement(options, {
    layerCount: plan.length,
    vocabSize: config.vocabSize,
    mostHeadRows: mostHeadRows(checkpoint, plan)
  })
  const isSpelledOut = [pinnedLayers, ringLayers].some((part) => part !== undefined)
  const isBare = trunk === 'stream' && ram === undefined
  const { usableBytes: bytes, source } = readMemory()
  return planMemory(
    config,
    { ...ASSUMED_SPEED, usable: { bytes, source } },
    {
      ram: ram === undefined ? 'auto' : ram,
      threads,
      contextTokens: wholeOrNull('contextTokens', options.contextTokens, 1, config.contextLength),
      chunkTokens: wholeOrNull('chunkTokens', options.chunkTokens, 1, Number.MAX_SAFE_INTEGER),
      cacheSlots,
      policy: typeof policy === 'string' ? policy : 'lru',
      trunk: isSpelledOut || isBare ? placement : trunk === undefined ? null : trunk,
      prefixCacheBytes: wholeOrNull(
        'prefixCacheBytes',
        options.prefixCacheBytes ?? 0,
        0,
        Number.MAX_SAFE_INTEGER
      ),
      speculates,
      layers: plan.length
    }
  )
}

const wholeOrNull = (
  field: string,
  value: number | 'auto' | undefined,
  least: number,
  most: number
): number | null => {
  if (value === undefined || value === 'auto') return null
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  const bound = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `in ${least} … ${most}`
  const need = `a whole number ${bound}`
  throw new K3Error('ERR_K3_OPTION', `${field} must be ${need}, got ${String(value)}`, {
    field,
    have: value,
    need
  })
}
