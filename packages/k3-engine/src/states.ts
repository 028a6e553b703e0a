import { K3Error } from './errors.js'
import type { Layer, LayerState } from './interfaces.js'

/** What one sequence carries: its length, and one state per layer (KDA states and conv tails, MLA latents). */
export class SequenceState {
  position = 0
  /** Layers have different positions: a chunk is running, or one ended before its last layer. */
  busy = false
  readonly layers: readonly (LayerState | null)[]

  constructor(layers: readonly (LayerState | null)[]) {
    this.layers = layers
  }

  static empty(mixers: readonly Layer[]): SequenceState {
    return new SequenceState(mixers.map((mixer) => mixer.createState()))
  }

  /** An independent copy; costs `bytes` bytes. */
  copy(): SequenceState {
    const copy = new SequenceState(this.layers.map((state) => (state === null ? null : state.copy())))
    copy.position = this.position
    return copy
  }

  get bytes(): number {
    return this.layers.reduce((sum, state) => sum + (state === null ? 0 : state.bytes), 0)
  }

  /** @throws ERR_K3_CONTEXT_FULL when `tokens` more do not fit into the context */
  reserve(tokens: number, contextLength: number): void {
    if (this.position + tokens <= contextLength) return
    const message = `${this.position} tokens and ${tokens} more exceed the context of ${contextLength}`
    throw new K3Error('ERR_K3_CONTEXT_FULL', message, { have: this.position + tokens, need: contextLength })
  }
}
