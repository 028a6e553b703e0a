import { K3Error } from './errors.js'
import type { Model } from './model.js'
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

  /** Made by `model.createSession()`. */
  constructor(model: Model, state: SequenceState) {
    this.#model = model
    this.#state = state
  }

  /** Tokens taken in so far. */
  get position(): number {
    return this.#live().position
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
    return this.#model.advance(this.#live(), ids, 'last', options)
  }

  /** Appends one id: the decode step. Returns the logits, f32 [vocab], in a new array. @throws as `append` */
  async step(id: number, options: RunOptions = {}): Promise<Float32Array> {
    return this.append([id], options)
  }

  /** Appends ids and returns the logits after each of them, f32 [ids, vocab]. @throws as `append` */
  async appendAll(ids: ArrayLike<number>, options: RunOptions = {}): Promise<Float32Array> {
    return this.#model.advance(this.#live(), ids, 'all', options)
  }

  /** An independent copy of the sequence; costs `bytes` bytes. @throws ERR_K3_SESSION_BUSY while a call on it runs */
  fork(): Session {
    return new Session(this.#model, this.#live().copy())
  }

  /** Frees the state. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state = null
  }

  #live(): SequenceState {
    if (this.#state === null) throw new K3Error('ERR_K3_DISPOSED', 'the session was disposed')
    this.#state.refuseTorn()
    return this.#state
  }
}
