import { K3Error } from './errors.js'
import type { Model } from './model.js'
import { writeSession } from './session-file/write-session.js'
import type { StateMark } from './state-mark.js'
import type { SequenceState } from './states.js'

/** Settings of a call that runs layers. */
export interface RunOptions {
  /** Ends the call within one layer; it rejects with `signal.reason`. */
  readonly signal?: AbortSignal | undefined
  /** Called after each layer: tokens done before this chunk plus the share of the chunk, and the total. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

/**
 * One sequence. Calls on it, and on other sessions of the same model, run one after the other; two sessions never see
 * each other's state.
 */
export class Session implements AsyncDisposable {
  readonly #model: Model
  #state: SequenceState | null
  #turn: Promise<unknown> = Promise.resolve()
  #calls = 0
  #isTaken = false

  /** Made by `model.createSession()` and `model.loadSession()`. */
  constructor(model: Model, state: SequenceState) {
    this.#model = model
    this.#state = state
  }

  get model(): Model {
    return this.#model
  }

  /** Tokens taken in so far. */
  get position(): number {
    return this.#live().position
  }

  /** The tokens themselves; the array goes on growing with the session. */
  get ids(): readonly number[] {
    return this.#live().ids
  }

  /** What follows the last token, f32 [vocab], in a new array; null for an empty session. */
  get logits(): Float32Array | null {
    const { logits } = this.#live()
    return logits === null ? null : logits.slice()
  }

  /** Whether an earlier call ended between two layers, or the session was disposed; other members are refused then. */
  get isLost(): boolean {
    return this.#state === null || this.#state.isTorn
  }

  /** Memory of the state now, in bytes: KDA states, conv tails, MLA latents. */
  get bytes(): number {
    return this.#live().bytes
  }

  /**
   * Appends ids and returns the logits after the last one, f32 [vocab], in a new array. Ids run in chunks; the bits do
   * not depend on how they are cut.
   * @throws ERR_K3_TOKEN_ID, ERR_K3_CONTEXT_FULL before anything ran; the session stays as it was
   * @throws ERR_K3_LOGITS_NONFINITE, a read error, or `signal.reason`: the session is torn, and later calls, waiting ones
   * included, are refused with ERR_K3_SESSION_TORN
   */
  async append(ids: ArrayLike<number>, options: RunOptions = {}): Promise<Float32Array> {
    return this.#exclusively((state) => this.#model.advance(state, ids, 'last', options))
  }

  /** Appends one id: the decode step. Returns the logits, f32 [vocab], in a new array. @throws as `append` */
  async step(id: number, options: RunOptions = {}): Promise<Float32Array> {
    return this.append([id], options)
  }

  /** Appends ids and returns the logits after each of them, f32 [ids, vocab]. @throws as `append` */
  async appendAll(ids: ArrayLike<number>, options: RunOptions = {}): Promise<Float32Array> {
    return this.#exclusively((state) => this.#model.advance(state, ids, 'all', options))
  }

  /** An independent copy of the sequence; costs `bytes` bytes. @throws ERR_K3_SESSION_BUSY while a call is running */
  fork(): Session {
    return new Session(this.#model, this.#idle('fork it').copy())
  }

  /** Notes where the sequence is, for `rewind`; costs a copy of the KDA states. @throws ERR_K3_SESSION_BUSY */
  mark(mark: StateMark): void {
    mark.take(this.#idle('mark it'))
  }

  /** Takes back everything since the mark. @throws ERR_K3_SESSION_BUSY */
  rewind(mark: StateMark): void {
    mark.restore(this.#idle('rewind it'))
  }

  /**
   * Saves the sequence for `model.loadSession`, after the calls that are running. The file is complete or not there: it
   * replaces one of the same name only when all of it is on the disk. docs/SESSION_FORMAT.md describes it.
   * @throws ERR_K3_SESSION_WRITE, the old file being unchanged
   * @throws ERR_K3_SESSION_STATE when a layer was replaced by one with a state of its own making
   */
  async save(path: string): Promise<void> {
    await this.#exclusively(async (state) => writeSession(path, await this.#model.identity(), state))
  }

  /** Reserves the session for one generation; returns what ends that. @throws ERR_K3_SESSION_BUSY when it is taken */
  take(): () => void {
    this.#live()
    if (this.#isTaken) throw busy('generating', 'continue it when that has ended')
    this.#isTaken = true
    return () => {
      this.#isTaken = false
    }
  }

  /** Frees the state. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state = null
  }

  /** Runs `work` when the calls before it have ended. */
  async #exclusively<T>(work: (state: SequenceState) => Promise<T>): Promise<T> {
    this.#live()
    const before = this.#turn
    this.#calls++
    const mine = (async () => {
      await before.then(undefined, () => undefined)
      return work(this.#live())
    })()
    this.#turn = mine
    try {
      return await mine
    } finally {
      this.#calls--
    }
  }

  #idle(intention: string): SequenceState {
    const state = this.#live()
    if (this.#calls > 0) throw busy('running layers or being saved', `${intention} when that has ended`)
    return state
  }

  #live(): SequenceState {
    if (this.#state === null) throw new K3Error('ERR_K3_DISPOSED', 'the session was disposed')
    this.#state.refuseTorn()
    return this.#state
  }
}

const busy = (doing: string, advice: string) =>
  new K3Error('ERR_K3_SESSION_BUSY', `the session is ${doing}; ${advice}`)
