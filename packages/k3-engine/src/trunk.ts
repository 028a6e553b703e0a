import type { WeightSource } from './interfaces.js'

/** The always-active weights of an open model: those that layers and head are bound to, and the embedding table. */
export interface Trunk extends WeightSource {
  /** Bytes asked of the disk since it was opened; 0 for a mapping, whose pages the system reads. */
  readonly bytesRead: number
  /** Writes the embeddings of `ids` to `out`, f32 [ids, hidden]. */
  embed(ids: ArrayLike<number>, out: Float32Array): void
  /** A pass over all layers begins; `withHead` when it ends with logits. */
  begin(withHead: boolean): void
  /** Waits for what a layer begins with; null: the head. Its products would wait as well, but nobody could tell. */
  enter(layer: number | null): void
  /** The pass is over: what it used last may go. */
  end(): void
  /** Whether `enter` would not wait. */
  has(layer: number): boolean
  /** Gives the memory back: nothing may be multiplied with it any more. A mapping stays until its ops are collected. */
  close(): void
}

/** Name of the embedding table. */
export const EMBEDDING = 'language_model.model.embed_tokens.weight'
