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
  #torn: unknown

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
   * @throws ERR_K3_LOGITS_NONFINITE, a read error, or `signal.reason`: the session is torn, later calls are refused
   */
  async append(ids: ArrayLike<number>, options: RunOptions = {}): Promise<Float32Array> {
    return this.#run((state) => this.#model.advance(state, ids, 'last', options))
  }

  /** Appends one id: the decode step. Returns the logits, f32 [vocab], in a new array. @throws as `append` */
  async step(id: number, options: RunOptions = {}): Promise<Float32Array> {
    return this.append([id], options)
  }

  /** Appends ids and returns the logits after each of them, f32 [ids, vocab]. @throws as `append` */
  async appendAll(ids: ArrayLike<number>, options: RunOptions = {}): Promise<Float32Array> {
    return this.#run((state) => this.#model.advance(state, ids, 'all', options))
  }

  /** An independent copy of the sequence; costs `bytes` bytes. */
  fork(): Session {
    return new Session(this.#model, this.#live().copy())
  }

  /** Frees the state. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state = null
  }

  async #run(work: (state: SequenceState) => Promise<Float32Array>): Promise<Float32Array> {
    const state = this.#live()
    const before = state.position
    try {
      return await work(state)
    } catch (error) {
      if (state.position !== before || state.busy) this.#torn = error
      throw error
    }
  }

  #live(): SequenceState {
    if (this.#state === null) throw new K3Error('ERR_K3_DISPOSED', 'the session was disposed')
    if (this.#torn !== undefined) {
      const message = 'an earlier call on this session ended between two layers; start a new session'
      throw new K3Error('ERR_K3_SESSION_TORN', message, { cause: this.#torn })
    }
    return this.#state
  }
}
