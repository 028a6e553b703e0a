import { K3Error } from './errors.js'
import type { Layer, LayerState } from './interfaces.js'

/** What one sequence carries: its length, and one state per layer (KDA states and conv tails, MLA latents). */
export class SequenceState {
  position = 0
  /** Layers may have different positions, because ids are on their way through them. */
  busy = false
  #torn: { readonly by: unknown } | null = null
  readonly layers: readonly (LayerState | null)[]

  constructor(layers: readonly (LayerState | null)[]) {
    this.layers = layers
  }

  static empty(mixers: readonly Layer[]): SequenceState {
    return new SequenceState(mixers.map((mixer) => mixer.createState()))
  }

  /** An independent copy; costs `bytes` bytes. @throws ERR_K3_SESSION_BUSY while ids run through the layers */
  copy(): SequenceState {
    if (this.busy)
      throw new K3Error('ERR_K3_SESSION_BUSY', 'a call on this session is running; wait for it, then fork')
    const copy = new SequenceState(this.layers.map((state) => (state === null ? null : state.copy())))
    copy.position = this.position
    return copy
  }

  get bytes(): number {
    return this.layers.reduce((sum, state) => sum + (state === null ? 0 : state.bytes), 0)
  }

  /** Nothing may run on it any more: layers have different positions since `error` ended a call. */
  tear(error: unknown): void {
    this.#torn = { by: error }
  }

  /** @throws ERR_K3_SESSION_TORN */
  refuseTorn(): void {
    if (this.#torn === null) return
    const message = 'an earlier call on this session ended between two layers; start a new session'
    throw new K3Error('ERR_K3_SESSION_TORN', message, { cause: this.#torn.by })
  }

  /** @throws ERR_K3_CONTEXT_FULL when `tokens` more do not fit into the context */
  reserve(tokens: number, contextLength: number): void {
    if (this.position + tokens <= contextLength) return
    const message = `${this.position} tokens and ${tokens} more exceed the context of ${contextLength}`
    throw new K3Error('ERR_K3_CONTEXT_FULL', message, { have: this.position + tokens, need: contextLength })
  }
}
