import { K3Error } from './errors.js'
import type { Model } from './model.js'
import type { Session } from './session.js'
import { refuseUnknownFields } from './unknown-fields.js'

/** Settings of a `PrefixCache`. */
export interface PrefixCacheOptions {
  /** What its snapshots may take, in bytes; the released model needs 0.46 GB for one, and 55 kB a token. */
  readonly maxBytes: number
  /** A long prompt is kept at every multiple of this many tokens, a long answer each time it has grown by as many. Default 1024. */
  readonly interval?: number
}

// A tenth of a percent of a long prompt's work, and few enough snapshots that several conversations fit in memory.
const INTERVAL_TOKENS = 1024

/**
 * Snapshots of sequences that ran, so that a prompt which begins like one of them starts there. KDA states cannot be cut
 * back, so reuse begins at a snapshot, not anywhere: `generate` keeps one where a prompt ends, one where its answer ends,
 * one at every multiple of the interval within a prompt and one after each interval of an answer, also when it is aborted
 * later. The least recently used go first. What comes out has the same bits with a cache, without one, and whatever it holds.
 */
export class PrefixCache {
  readonly model: Model
  readonly interval: number
  readonly #maxBytes: number
  /** least recently used first */
  #snapshots: Session[] = []

  /** @throws ERR_K3_OPTION naming the option that is unknown or out of its range */
  constructor(model: Model, options: PrefixCacheOptions) {
    refuseUnknownFields(options, ['maxBytes', 'interval'], 'ERR_K3_OPTION', 'a prefix cache')
    const { maxBytes, interval = INTERVAL_TOKENS } = options
    wholeNumber('maxBytes', maxBytes, 0)
    wholeNumber('interval', interval, 1)
    this.model = model
    this.interval = interval
    this.#maxBytes = maxBytes
  }

  /** Memory taken by the snapshots now. */
  get bytes(): number {
    return this.#snapshots.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Lengths of the snapshots in tokens, the least recently used first. */
  get positions(): readonly number[] {
    return this.#snapshots.map(({ position }) => position)
  }

  /** A session of its own with the longest known beginning of `ids`; empty when none is known. */
  open(ids: ArrayLike<number>): Session {
    let best: Session | null = null
    for (const snapshot of this.#snapshots) {
      if (best !== null && snapshot.position <= best.position) continue
      if (startsWith(ids, snapshot.ids)) best = snapshot
    }
    if (best === null) return this.model.createSession()
    this.#touch(best)
    return best.fork()
  }

  /** Keeps a copy of the session as it is now, if one fits; costs `session.bytes` bytes. */
  keep(session: Session): void {
    const { ids, position, bytes } = session
    if (position === 0 || bytes > this.#maxBytes) return
    const known = this.#snapshots.find(
      (snapshot) => snapshot.position === position && startsWith(ids, snapshot.ids)
    )
    if (known !== undefined) {
      this.#touch(known)
      return
    }
    while (this.bytes + bytes > this.#maxBytes) this.#snapshots.shift()
    this.#snapshots.push(session.fork())
  }

  /** Forgets everything. */
  clear(): void {
    this.#snapshots = []
  }

  #touch(snapshot: Session): void {
    this.#snapshots = [...this.#snapshots.filter((other) => other !== snapshot), snapshot]
  }
}

const startsWith = (ids: ArrayLike<number>, beginning: readonly number[]): boolean =>
  beginning.length <= ids.length && beginning.every((id, i) => id === ids[i])

const wholeNumber = (field: string, have: number, least: number): void => {
  if (Number.isSafeInteger(have) && have >= least) return
  const need = `a whole number of at least ${least}`
  throw new K3Error('ERR_K3_OPTION', `${field} must be ${need}, got ${String(have)}`, { field, have, need })
}
