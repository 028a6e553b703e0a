import type { Weights } from './weights-location.js'

/** Several matrices applied to one input, `outs[i][t] = W_i x[t]`. x: f32 [tokens, in]; outs[i]: f32 [tokens, out_i]. */
export interface Linears {
  apply(x: Float32Array, outs: readonly Float32Array[], tokens: number): void
}

/** Where the always-active weights come from. Names are full checkpoint names; shapes were checked at open. */
export interface WeightSource {
  /** Matrices that read the same input, bound once. */
  linears(names: readonly string[]): Linears
  /** A tensor as f32, in a new array. */
  vector(name: string): Float32Array
  /** An op over the raw bytes of a matrix. `bind` is called once for each place they may lie; asks for the one of now. */
  tensor<Op>(name: string, bind: (weights: Weights) => Op): () => Op
}

/** Some experts of one layer, on their way into memory. */
export interface ExpertBatch {
  /**
   * Waits until an expert is in memory that was not given out yet, and gives all there are: `positions[i]`, where in the
   * batch's ids it is, and `bases[i]`, the byte offset of its run in the source's region. They stay until the next call.
   * Returns how many; 0 when all were given out before.
   */
  arrive(positions: Int32Array, bases: Float64Array): number
  /** Gives the experts back to the cache; all were given out. */
  end(): void
  /** Gives the batch up after a failure: waits for reads in flight, keeps nothing that is half read. */
  abort(): void
}

/** Where routed experts come from. An expert's run is laid out as in the checkpoint's layer. */
export interface ExpertSource {
  /** The memory all experts are placed in. */
  readonly region: { readonly handle: object; readonly bytes: number }
  /**
   * Starts reading whatever of the distinct experts `ids` is not resident, and returns at once. Any number of them.
   * `tokens` of the sequence ask for them together: for one they are in router order, and many are a piece of a prompt.
   */
  begin(layer: number, ids: Int32Array, tokens: number): ExpertBatch
}

/** What a layer carries from token to token. */
export interface LayerState {
  /** Size in memory now, in bytes. */
  readonly bytes: number
  /** An independent copy. */
  copy(): LayerState
}

/** One half of a decoder layer: a mixer (KDA, MLA) or a feed-forward block. */
export interface Layer {
  /** The state of an empty sequence; null when the layer keeps none. */
  createState(): LayerState | null
  /** out[t] = F(x[t]) for `tokens` more tokens. x, out: f32 [tokens, hidden]; `state` is advanced. */
  forward(x: Float32Array, state: LayerState | null, out: Float32Array, tokens: number): void
}

/** Text to token ids and back. */
export interface Tokenizer {
  encode(text: string): ArrayLike<number>
  decode(ids: readonly number[]): string
  /** A decoder for ids that arrive one by one. */
  stream(): TokenStream
}

/** Text of ids that arrive one by one; holds back the bytes of an unfinished character. */
export interface TokenStream {
  push(id: number): string
  flush(): string
}

/** Chooses the next token of one sequence at a time. */
export interface Sampler {
  /** Starts a sequence that has these tokens already; what was counted before is forgotten, a generator runs on. */
  begin(ids: ArrayLike<number>): void
  /** The sequence goes on with this token, which was picked or put there. */
  accept(id: number): void
  /**
   * logits: f32 [vocab], finite, to be left as they are. allowed: bit `id & 31` of word `id >>> 5` is set when the token
   * may be picked; null allows all. Returns an id.
   */
  pick(logits: Float32Array, allowed: Uint32Array | null): number
}

/** Says which tokens may come next: a grammar, a schema, a forced call. */
export interface TokenConstraint {
  /** u32 [vocab / 32, rounded up] as in `Sampler.pick`; null allows everything. Asked once before each token. */
  mask(): Uint32Array | null
  /** The generation goes on with this token, an end token included. */
  accept(id: number): void
}
