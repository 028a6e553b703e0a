import type { VectorOps } from '@k3/vector-ops'
import type { K3Config } from './config.js'

/**
 * The block attention residuals of the tokens in flight (docs/spec/SPEC.md §5): finished blocks, oldest first, and the
 * running prefix. It restarts from the embedding for every chunk; nothing of it is kept across chunks.
 */
export class ResidualStream {
  readonly width: number
  readonly eps: number
  /** f32 [tokens, width]: the sum of everything since the last push */
  readonly prefix: Float32Array
  tokens = 0
  blockCount = 0
  readonly #blocks: Float32Array[]
  readonly #sources: Float32Array[][]
  #prefixIsEmpty = false

  constructor({ hiddenSize, layerCount, residualBlockSize, rmsNormEps }: K3Config, maxTokens: number) {
    const rows = () => new Float32Array(maxTokens * hiddenSize)
    this.width = hiddenSize
    this.eps = rmsNormEps
    this.prefix = rows()
    this.#blocks = Array.from({ length: Math.ceil(layerCount / residualBlockSize) }, rows)
    this.#sources = Array.from({ length: this.#blocks.length + 1 }, (_, n) => [
      ...this.#blocks.slice(0, n),
      this.prefix
    ])
  }

  /** Starts over; the caller has written the embeddings of `tokens` tokens into `prefix`. */
  restart(tokens: number): void {
    this.tokens = tokens
    this.blockCount = 0
    this.#prefixIsEmpty = false
  }

  /** What a mix reads: the blocks, oldest first, then the prefix. */
  sources(): readonly Float32Array[] {
    return this.#sources[this.blockCount]!
  }

  /** The prefix becomes a finished block and the next sum starts from nothing. */
  pushBlock(): void {
    this.#blocks[this.blockCount++]!.set(this.prefix.subarray(0, this.tokens * this.width))
    this.#prefixIsEmpty = true
  }

  /** prefix += delta; after a push, prefix = delta. delta: f32 [tokens, width] */
  accumulate(delta: Float32Array, ops: VectorOps): void {
    const length = this.tokens * this.width
    if (this.#prefixIsEmpty) this.prefix.set(delta.subarray(0, length))
    else ops.add(this.prefix, delta, this.prefix, length)
    this.#prefixIsEmpty = false
  }
}
