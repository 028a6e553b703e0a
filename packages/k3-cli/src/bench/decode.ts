import { cpus } from 'node:os'
import type { Model, Span } from '@k3/engine'
import { createPool, type TaskPool } from '@k3/task-pool'
import { allocRegion } from '@k3/uring'
import { createMachineProbe } from '@k3/vector-ops'
import { UsageError } from '../usage-error.js'
import { BlockTimes } from './block-times.js'
import type { Isa } from './isa.js'
import { READ_STREAMS } from './measure.js'
import { lastCacheBytes } from './sizes.js'
import { BLOCKS, type Block, type BlockBytes, tokenBytes } from './token-bytes.js'

const READ_BYTES = 256 * 2 ** 20
// V8 compiles what was called some dozens of times, and interprets it before: seen as 2 to 4 ms a token on four layers.
const WARM_UP_LAYERS = 64

/** The best rate at which `threads` threads read memory. A shared machine's rate moves: ask again and again. */
export class ReadRate implements Disposable {
  readonly #region = allocRegion(Math.max(READ_BYTES, 4 * lastCacheBytes()))
  readonly #pool: TaskPool
  readonly #reads: readonly (() => number)[]
  #bestMs = Number.POSITIVE_INFINITY

  constructor(threads: number, isa: Isa) {
    const region = this.#region
    region.view(0, region.bytes).fill(1)
    this.#pool = createPool({ threads })
    const probe = createMachineProbe({ pool: this.#pool, isa })
    this.#reads = READ_STREAMS.map((streams) => probe.reading({ region, offset: 0 }, region.bytes, streams))
  }

  measure(): void {
    for (const read of this.#reads) {
      const start = performance.now()
      read()
      this.#bestMs = Math.min(this.#bestMs, performance.now() - start)
    }
  }

  /** GB/s, of the measurements so far. */
  get best(): number {
    return this.#region.bytes / this.#bestMs / 1e6
  }

  [Symbol.dispose](): void {
    this.#pool.close()
    this.#region.close()
  }
}

/** Where the time of a token, or of a prompt, went: seconds by block. */
interface Split {
  readonly seconds: number
  readonly blocks: ReadonlyMap<Block, number>
}

/** A prompt and the tokens after it, taken apart. */
export interface DecodeRun {
  /** Bytes a token in the middle of the run had to move. */
  readonly bytes: BlockBytes
  /** The first pass of the prompt, which reads what was not in memory, and the same again. */
  readonly prefill: readonly [Split, Split]
  /** Tokens that ran between the prompt and the measured ones. */
  readonly warmUpTokens: number
  /** Seconds of each token, and the mean token. */
  readonly tokens: readonly number[]
  readonly mean: Split
  /** Bytes asked of the disk for a measured token. */
  readonly bytesReadPerToken: number
}

/** How much is run, and what is done between tokens. */
export interface DecodeLengths {
  readonly promptTokens: number
  readonly tokens: number
  readonly layers: number
  readonly between: () => void
}

/** Runs a prompt, then tokens one by one, and notes where the time goes. */
export class DecodeBench {
  #times: BlockTimes | null = null

  /** For `openModel`. */
  readonly onSpan = (span: Span): void => this.#times?.add(span)

  async run(
    model: Model,
    { promptTokens, tokens, layers, between }: DecodeLengths,
    progress: (line: string) => void
  ): Promise<DecodeRun> {
    const warmUpTokens = Math.ceil(WARM_UP_LAYERS / layers)
    refuseLongRun(promptTokens + warmUpTokens + tokens, model.contextTokens)
    const bytes = tokenBytes(model.config, layers, promptTokens + warmUpTokens + tokens / 2)
    const times = new BlockTimes(bytes)
    this.#times = times
    const ids = idSource(model.config.vocabSize)
    const prompt = Array.from({ length: promptTokens }, ids)
    const timed = async (work: () => Promise<unknown>): Promise<Split> => {
      times.restart()
      const start = performance.now()
      await work()
      const ms = performance.now() - start
      return { seconds: ms / 1000, blocks: inSeconds(times.split(ms)) }
    }
    progress(`prefilling ${promptTokens} tokens …`)
    await using session = model.createSession()
    const first = await timed(() => session.append(prompt))
    progress(`warming up for ${warmUpTokens} tokens`)
    for (let i = 0; i < warmUpTokens; i++) await session.step(ids())
    const splits: Split[] = []
    const readBefore = bytesRead(model)
    for (let i = 0; i < tokens; i++) {
      progress(`token ${i + 1} of ${tokens}`)
      splits.push(await timed(() => session.step(ids())))
      between()
    }
    const bytesReadPerToken = (bytesRead(model) - readBefore) / tokens
    progress(`prefilling ${promptTokens} tokens again …`)
    await using fresh = model.createSession()
    const again = await timed(() => fresh.append(prompt))
    const seconds = splits.map((split) => split.seconds)
    const prefill = [first, again] as const
    return { bytes, prefill, warmUpTokens, tokens: seconds, mean: meanOf(splits), bytesReadPerToken }
  }
}

/** Before the first token, not when the context is full, which may be hours later. */
const refuseLongRun = (tokens: number, contextTokens: number): void => {
  if (tokens <= contextTokens) return
  throw new UsageError(
    `prompt, warm-up and measured tokens are ${tokens}, the context has room for ${contextTokens}: see --tokens and --context`
  )
}

const bytesRead = ({ traffic }: Model): number => traffic.bytesRead + traffic.trunkBytesRead

/** Ids that a seeded generator draws, so that routers choose as widely as over text. */
const idSource = (vocab: number) => {
  let state = 1
  return (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * vocab)
  }
}

const inSeconds = (split: ReadonlyMap<Block, number>) =>
  new Map([...split].map(([block, ms]) => [block, ms / 1000]))

const meanOf = (splits: readonly Split[]): Split => {
  const mean = (of: (split: Split) => number) =>
    splits.reduce((sum, split) => sum + of(split), 0) / splits.length
  const blocks = BLOCKS.filter((block) => splits.some((split) => split.blocks.has(block)))
  return {
    seconds: mean(({ seconds }) => seconds),
    blocks: new Map(blocks.map((block) => [block, mean((split) => split.blocks.get(block) ?? 0)]))
  }
}

/** The processor's own name for itself. */
export const cpuName = (): string => cpus()[0]?.model ?? 'unknown'
