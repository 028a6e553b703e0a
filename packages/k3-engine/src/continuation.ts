import type { DraftLength } from './draft-length.js'
import { NgramDrafts } from './ngram-drafts.js'
import type { Session } from './session.js'
import { StateMark } from './state-mark.js'

/** What speculation did in a generation. */
export interface SpeculationStatistics {
  /** passes that verified drafts */
  readonly passes: number
  readonly drafted: number
  /** drafted tokens that were the ones chosen: each saved a pass */
  readonly accepted: number
}

/** Goes on from token to token; how many passes over the layers that takes is its own affair. */
export interface Continuation {
  /** Logits after `id`, the token just chosen; at most `room` tokens may be run beyond it. f32 [vocab] */
  after(id: number, room: number): Promise<Float32Array>
  /** Whether the session has exactly the tokens that `after` was given, no draft beyond them. */
  readonly isSettled: boolean
  /** Leaves the session with exactly the tokens that `after` was given; after an abort perhaps with fewer. */
  settle(): Promise<void>
  /** Null when there are none. */
  statistics(): SpeculationStatistics | null
}

/** One pass a token. */
export const serial = (session: Session, signal: AbortSignal | undefined): Continuation => ({
  after: (id) => session.step(id, { signal }),
  isSettled: true,
  settle: async () => undefined,
  statistics: () => null
})

// Tokens that run again with the next drafts after a rejection; beyond this they run alone first.
const MOST_PENDING = 16

/** A pass whose last rows are what follows its drafts. */
interface Verification {
  /** tokens before the drafts that the mark does not have */
  readonly pending: readonly number[]
  readonly drafts: readonly number[]
  /** f32 [pending + drafts, vocab] */
  readonly rows: Float32Array
  accepted: number
}

/**
 * Verifies drafted tokens in one pass: its rows are the logits a serial run has there, bit for bit, so whoever chooses
 * from them chooses the same tokens. At the first that differs from the draft the states return to where the pass began,
 * and the accepted tokens run again together with the next drafts.
 */
export class Speculation implements Continuation {
  readonly #session: Session
  readonly #signal: AbortSignal | undefined
  readonly #length: DraftLength
  readonly #drafts: NgramDrafts
  readonly #mark = new StateMark()
  #pass: Verification | null = null
  #passes = 0
  #drafted = 0
  #accepted = 0

  constructor(session: Session, length: DraftLength, signal: AbortSignal | undefined) {
    this.#session = session
    this.#length = length
    this.#signal = signal
    this.#drafts = new NgramDrafts(session.ids)
  }

  async after(id: number, room: number): Promise<Float32Array> {
    this.#drafts.push(id)
    const pass = this.#pass
    if (pass !== null && pass.drafts[pass.accepted] === id) {
      pass.accepted++
      this.#accepted++
      return this.#rowAfter(pass)
    }
    return this.#run([...this.#endPass(), id], room)
  }

  get isSettled(): boolean {
    return this.#pass === null || this.#pass.accepted === this.#pass.drafts.length
  }

  async settle(): Promise<void> {
    const pending = this.#endPass()
    // an abort in the middle would cost the session; after one it stays where it is, which its ids tell
    if (pending.length > 0 && this.#signal?.aborted !== true) await this.#session.append(pending)
  }

  statistics(): SpeculationStatistics {
    return { passes: this.#passes, drafted: this.#drafted, accepted: this.#accepted }
  }

  async #run(pending: readonly number[], room: number): Promise<Float32Array> {
    const most = Math.min(this.#length.next(), room)
    const drafts = pending.length > MOST_PENDING ? [] : this.#drafts.propose(most)
    if (drafts.length === 0) return this.#session.append(pending, { signal: this.#signal })
    this.#session.mark(this.#mark)
    const rows = await this.#session.appendAll([...pending, ...drafts], { signal: this.#signal })
    this.#pass = { pending, drafts, rows, accepted: 0 }
    this.#passes++
    this.#drafted += drafts.length
    return this.#rowAfter(this.#pass)
  }

  /** Takes back what was not accepted; returns the tokens that have to run again. */
  #endPass(): readonly number[] {
    const pass = this.#pass
    this.#pass = null
    if (pass === null) return []
    this.#length.observe(pass.drafts.length, pass.accepted)
    if (pass.accepted === pass.drafts.length) return []
    this.#session.rewind(this.#mark)
    return [...pass.pending, ...pass.drafts.slice(0, pass.accepted)]
  }

  #rowAfter({ pending, drafts, rows, accepted }: Verification): Float32Array {
    const vocab = rows.length / (pending.length + drafts.length)
    const row = pending.length - 1 + accepted
    return rows.slice(row * vocab, (row + 1) * vocab)
  }
}
