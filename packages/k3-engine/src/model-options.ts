import type { EvictionPolicy, PolicyName } from '@k3/moe-cache'
import type { ExpertSource, Layer, WeightSource } from './interfaces.js'
import type { LayerPlan } from './layer-plan.js'
import type { Ram } from './memory/budget.js'
import type { NumaPlacement } from './memory/numa.js'
import type { PressureReading } from './memory/pressure.js'
import type { OnSpan } from './spans.js'
import type { TrunkPlacement } from './trunk-placement.js'
import type { OnRead } from './watch-reads.js'

/**
 * What decides which expert gives up its slot, unless something else is asked for: the best of the built-in ones below half
 * of the experts a context uses, and close to the best above (docs/EXPERT_CACHE.md).
 */
export const DEFAULT_POLICY: PolicyName = 'next-use'

/**
 * Settings of `openModel`. None of them changes a bit of the logits, except `layers`, `expertActivations` and `parts`.
 */
export interface ModelOptions {
  /** Threads that compute, the caller's included. Default: the CPUs available. */
  readonly threads?: number
  /** Default: the best this CPU has. */
  readonly isa?: 'auto' | 'scalar' | 'avx2' | 'avx512' | 'neon'
  /**
   * Memory of the whole process: bytes, a preset (`laptop` 8 GB, `desktop` 32, `workstation` 64, `workstation-96`, `server`
   * 128), `max`, or `auto`, the default: what the system and its control groups can give, less some headroom.
   */
  readonly ram?: Ram
  /**
   * Experts kept in memory, over all layers: from those one token uses in a layer to all of them. Default: what the memory
   * plan allows.
   */
  readonly cacheSlots?: number
  /** Tokens of a prompt that go through a layer together. Default: 16 to 256, as `ram` allows. */
  readonly chunkTokens?: number
  /** Tokens a sequence may have. Default: 1024 to 32768, as `ram` allows. */
  readonly contextTokens?: number
  /** Set aside for a `PrefixCache`; 'auto': a sixteenth of the budget, at most 4 GB. Default 0. */
  readonly prefixCacheBytes?: number | 'auto'
  /** Sets aside what `generate({ speculate })` keeps to return to. Default false. */
  readonly speculates?: boolean
  /**
   * Where memory of experts and of a trunk that is not mapped is taken from: near the thread that touches a page first, or
   * from all NUMA nodes in turn. Default `auto`: in turn when there are several and the system lets it be asked for.
   */
  readonly numa?: NumaPlacement
  /**
   * 'exact', the default, or 'int8': inputs of the routed experts are rounded to 8 bits, which is faster and an
   * approximation; docs/NUMERICS.md says what it does to the logits.
   */
  readonly expertActivations?: ExpertActivations
  /** Runs only the first layers, for looking inside. */
  readonly layers?: number
  /**
   * Where the always-active weights lie: mapped files, all in memory of their own, or read again for each token ahead of
   * the computation, as far as memory does not hold them. Default: the first that fits.
   */
  readonly trunk?: TrunkPlacement['mode']
  /** Layers that stay in memory when the trunk is streamed. Default: what `ram` holds when it is given, else none. */
  readonly pinnedLayers?: readonly number[]
  /** Buffers layers are streamed into, of the largest layer's size; at least 2, the default. */
  readonly ringLayers?: number
  /**
   * Experts to predict for the next layer and to read while the drive is idle, 0 to 256. Costs a product with the router
   * a layer. Default 0.
   */
  readonly lookahead?: number
  /**
   * More folders with shards of the checkpoint, for instance on other drives: those the first folder lacks are taken from
   * them, and whichever drive is free reads what several have.
   */
  readonly also?: readonly string[]
  /** How shards are read. Default: io_uring where it is to be had, past the page cache where the file system allows it. */
  readonly backend?: 'auto' | 'io_uring' | 'pread'
  readonly direct?: 'auto' | 'on' | 'off'
  /**
   * Told about each native call and each wait for the disk, when it has ended; for measuring. Costs nothing when absent.
   */
  readonly onSpan?: OnSpan
  /** Told about each read of a shard; reads overlap each other and the spans. */
  readonly onRead?: OnRead
  /** Your own parts in place of the built-in ones. */
  readonly parts?: CustomParts
}

/** How the inputs of routed experts are held. */
export type ExpertActivations = 'exact' | 'int8'

/** Replacements; each factory is given what it replaces, so that it can wrap it. */
export interface CustomParts {
  /** Which expert gives up its slot. Default: `next-use`. */
  readonly policy?: EvictionPolicy | PolicyName
  /** What says how much memory others want, asked after each run. Default: PSI and MemAvailable, at most once a second. */
  readonly pressure?: () => PressureReading
  readonly experts?: (builtIn: ExpertSource) => ExpertSource
  readonly weights?: (builtIn: WeightSource) => WeightSource
  readonly layer?: (builtIn: Layer, plan: LayerPlan, half: 'mixer' | 'ffn') => Layer
}
