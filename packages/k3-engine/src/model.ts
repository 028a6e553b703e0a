import type { Tokenizer as KimiTokenizer } from '@k3/tokenizer'
import type { K3Config } from './config.js'
import type { Decoder } from './decoder.js'
import { K3Error } from './errors.js'
import type { ExpertTraffic } from './experts.js'
import { type Generation, generate } from './generate.js'
import type { GenerationRequest } from './generation-request.js'
import type { Layer } from './interfaces.js'
import { LatentMoe } from './latent-moe.js'
import type { MemoryPlan } from './memory/plan.js'
import type { ExpertActivations } from './model-options.js'
import { argmax } from './sampler.js'
import { type RunOptions, Session } from './session.js'
import type { SessionIdentity } from './session-file/identity.js'
import { readSession } from './session-file/read-session.js'
import { SequenceState } from './states.js'

/** The bound parts of an open model. */
export interface ModelParts {
  readonly config: K3Config
  readonly decoder: Decoder
  readonly tokenizer: KimiTokenizer | null
  readonly memory: MemoryPlan
  readonly expertActivations: ExpertActivations
  readonly traffic: () => ModelTraffic
  /** Experts that can be kept now. */
  readonly cacheSlots: () => number
  /** Called when tokens have run and nothing is in flight. */
  readonly afterRun: () => void
  readonly backend: string
  readonly notices: readonly string[]
  /** What a saved session has to agree with; read from the shards when it is first asked for. */
  readonly identity: () => Promise<SessionIdentity>
  /** Throws when a shard is not the one that was opened. */
  readonly verifyShards: () => void
  readonly dispose: () => Promise<void>
}

/** Counts since a model was opened. */
export interface ModelTraffic extends ExpertTraffic {
  /** Bytes asked of the disk for layers, head and embedding rows; 0 when they are mapped. */
  readonly trunkBytesRead: number
  /** What each folder's copies delivered, and how long they had something to read. */
  readonly drives: readonly {
    readonly folder: string
    readonly bytesRead: number
    readonly busySeconds: number
  }[]
}

/** What one layer did with the last token of a chunk; arrays are copies. */
export interface LayerObservation {
  readonly layer: number
  /** f32 [hidden]: the running prefix of the residual stream after the layer */
  readonly prefix: Float32Array
  /** [k] chosen experts, highest selection key first, and their weights; empty for a dense layer */
  readonly experts: Int32Array
  readonly weights: Float32Array
}

/** Settings of a run, and who watches it. */
interface WatchedRun extends RunOptions {
  readonly observe?: ((layer: LayerObservation) => void) | undefined
}

// Long enough that the turn costs nothing beside a layer, short enough that Ctrl-C and timers feel immediate.
const TURN_MS = 5

/** An open checkpoint. Made by `openModel`. */
export class Model implements AsyncDisposable {
  readonly #parts: ModelParts
  readonly #mixers: readonly Layer[]
  #turn: Promise<unknown> = Promise.resolve()
  #lastTurnMs = 0
  #disposed: Promise<void> | null = null

  constructor(parts: ModelParts) {
    this.#parts = parts
    this.#mixers = parts.decoder.parts.layers.map((layer) => layer.mixer)
  }

  get config(): K3Config {
    return this.#parts.config
  }

  /** Null when the checkpoint folder holds no tokenizer files: then prompts are ids. */
  get tokenizer(): KimiTokenizer | null {
    return this.#parts.tokenizer
  }

  /** Tokens a sequence may have: what memory was planned for, at most the context of the model. */
  get contextTokens(): number {
    return this.#parts.memory.contextTokens
  }

  /** Experts kept in memory now: those of the plan, or fewer while others need the memory. */
  get cacheSlots(): number {
    return this.#parts.cacheSlots()
  }

  /** What the model was given memory for. */
  get memory(): MemoryPlan {
    return this.#parts.memory
  }

  /** Hits and misses of the expert cache, and what was read from the disk, since the model was opened. */
  get traffic(): ModelTraffic {
    return this.#parts.traffic()
  }

  /** How the inputs of routed experts are held: 'int8' is an approximation. */
  get expertActivations(): ExpertActivations {
    return this.#parts.expertActivations
  }

  /** How shards are read, e.g. `io_uring, direct`. */
  get backend(): string {
    return this.#parts.backend
  }

  /** What is unusual about the checkpoint folder or this machine and yet no error, one sentence each. */
  get notices(): readonly string[] {
    return this.#parts.notices
  }

  /** An empty sequence. */
  createSession(): Session {
    this.#refuseDisposed()
    return new Session(this, SequenceState.empty(this.#mixers))
  }

  /**
   * A sequence as `session.save` left it; it goes on with the bits it would have had.
   * @throws ERR_K3_SESSION_READ when the file cannot be read
   * @throws ERR_K3_SESSION_MAGIC, ERR_K3_SESSION_VERSION, ERR_K3_SESSION_SIZE, ERR_K3_SESSION_CHECKSUM,
   * ERR_K3_SESSION_SECTIONS when it is no session file of this version, or a damaged one
   * @throws ERR_K3_SESSION_ARCHITECTURE, ERR_K3_SESSION_CHECKPOINT when it was saved with another model
   */
  async loadSession(path: string): Promise<Session> {
    this.#refuseDisposed()
    const identity = await this.#parts.identity()
    const limits = { vocabSize: this.config.vocabSize, contextTokens: this.contextTokens }
    return new Session(this, await readSession(path, identity, limits, SequenceState.empty(this.#mixers)))
  }

  /** What the session files of this model say about it. Sessions call this. */
  async identity(): Promise<SessionIdentity> {
    this.#refuseDisposed()
    return this.#parts.identity()
  }

  /** Logits after each id of a fresh sequence, f32 [ids, vocab]. @throws as `Session.append` */
  async forward(ids: ArrayLike<number>, options: WatchedRun = {}) {
    this.#refuseDisposed()
    const state = SequenceState.empty(this.#mixers)
    return this.advance(state, ids, 'all', options)
  }

  /** Text or tokens after a prompt: iterate it for the parts, await it for the whole. */
  generate(request: GenerationRequest): Generation {
    this.#refuseDisposed()
    return generate(this, request)
  }

  /** Runs ids through all layers, one caller at a time. Sessions call this. */
  async advance(
    state: SequenceState,
    ids: ArrayLike<number>,
    rows: 'last' | 'all',
    options: WatchedRun
  ): Promise<Float32Array> {
    const before = this.#turn
    const work = (async () => {
      await before.then(undefined, () => undefined)
      return this.#advance(state, ids, rows, options)
    })()
    this.#turn = work
    return work
  }

  /** Ends work in flight within one layer (it rejects with ERR_K3_DISPOSED), then frees everything. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed ??= this.#turn.then(this.#parts.dispose, this.#parts.dispose)
    return this.#disposed
  }

  async #advance(
    state: SequenceState,
    ids: ArrayLike<number>,
    rows: 'last' | 'all',
    run: WatchedRun
  ): Promise<Float32Array> {
    run.signal?.throwIfAborted()
    this.#refuseDisposed()
    state.refuseTorn()
    this.#checkIds(ids)
    state.reserve(ids.length, this.contextTokens)
    state.logits = null
    const out = new Float32Array((rows === 'all' ? ids.length : 1) * this.config.vocabSize)
    state.busy = true
    try {
      await this.#runChunks(state, ids, out, run)
    } catch (error) {
      state.tear(error)
      throw error
    } finally {
      state.busy = false
    }
    state.logits = out.slice(-this.config.vocabSize)
    this.#parts.afterRun() // what it throws costs no session
    return out
  }

  /** out: f32 [ids, vocab], or [1, vocab] for the last id alone. What it throws leaves layers at different positions. */
  async #runChunks(
    state: SequenceState,
    ids: ArrayLike<number>,
    out: Float32Array,
    { signal, onProgress, observe }: WatchedRun
  ): Promise<void> {
    const { decoder, verifyShards } = this.#parts
    const vocab = this.config.vocabSize
    const chunk = decoder.parts.scratch.maxTokens
    for (let first = 0; first < ids.length; first += chunk) {
      const part = Array.prototype.slice.call(ids, first, first + chunk) as number[]
      const last = first + part.length === ids.length
      // before, because a mapped page that a truncation took away would end the process; after, because of what was read
      verifyShards()
      const isWanted = last || out.length === ids.length * vocab
      await decoder.advance(part, state.layers, isWanted, (layer) => {
        observe?.(this.#observe(layer))
        onProgress?.(first + (part.length * (layer + 1)) / this.#mixers.length, ids.length)
        return this.#pause(signal)
      })
      for (const id of part) state.ids.push(id)
      verifyShards()
      if (out.length === ids.length * vocab) decoder.logits(part.length, out.subarray(first * vocab))
      else if (last) decoder.logits(1, out)
      if (isWanted) verifyShards()
    }
    argmax(out)
  }

  #checkIds(ids: ArrayLike<number>): void {
    const { vocabSize } = this.config
    if (!Number.isSafeInteger(ids?.length))
      throw new K3Error('ERR_K3_TOKEN_ID', 'expected an array of token ids', { have: ids })
    if (ids.length === 0)
      throw new K3Error('ERR_K3_TOKEN_ID', 'there is no token to run', { have: 0, need: 1 })
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!
      if (Number.isInteger(id) && id >= 0 && id < vocabSize) continue
      const message = `token ${i} of the input is ${id}; ids are whole numbers below ${vocabSize}`
      throw new K3Error('ERR_K3_TOKEN_ID', message, { have: id, need: vocabSize - 1 })
    }
  }

  #observe(layer: number): LayerObservation {
    const { stream, parts } = this.#parts.decoder
    const { ffn } = parts.layers[layer]!
    const end = stream.tokens * stream.width
    const k = ffn instanceof LatentMoe ? this.config.moe.topK : 0
    const from = (stream.tokens - 1) * k
    return {
      layer,
      prefix: stream.prefix.slice(end - stream.width, end),
      experts: ffn instanceof LatentMoe ? ffn.routing.chosen.slice(from, from + k) : new Int32Array(0),
      weights: ffn instanceof LatentMoe ? ffn.routing.weights.slice(from, from + k) : new Float32Array(0)
    }
  }

  /** Gives the event loop a turn when the last one is a while ago, so that an abort can arrive. */
  #pause(signal: AbortSignal | undefined): Promise<void> | undefined {
    signal?.throwIfAborted()
    this.#refuseDisposed()
    const now = performance.now()
    if (now - this.#lastTurnMs < TURN_MS) return undefined
    return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#lastTurnMs = performance.now()
      signal?.throwIfAborted()
    })
  }

  #refuseDisposed(): void {
    if (this.#disposed !== null) throw new K3Error('ERR_K3_DISPOSED', 'the model was disposed')
  }
}
