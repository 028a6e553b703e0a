import { K3Error } from './errors.js'
import type { Layer, LayerState } from './interfaces.js'

/** What one sequence carries: its ids, and one state per layer (KDA states and conv tails, MLA latents). */
export class SequenceState {
  /** The tokens that every layer has taken in. */
  readonly ids: number[] = []
  /** f32 [vocab]: what follows the last id; null for an empty sequence */
  logits: Float32Array | null = null
  /** Layers may have different positions, because ids are on their way through them. */
  busy = false
  #torn: { readonly by: unknown } | null = null
  readonly layers: (LayerState | null)[]

  constructor(layers: (LayerState | null)[]) {
    this.layers = layers
  }

  static empty(mixers: readonly Layer[]): SequenceState {
    return new SequenceState(mixers.map((mixer) => mixer.createState()))
  }

  get position(): number {
    return this.ids.length
  }

  /** An independent copy; costs `bytes` bytes. @throws ERR_K3_SESSION_BUSY while ids run through the layers */
  copy(): SequenceState {
    if (this.busy)
      throw new K3Error('ERR_K3_SESSION_BUSY', 'a call on this session is running; wait for it, then fork')
    const copy = new SequenceState(this.layers.map((state) => (state === null ? null : state.copy())))
    for (const id of this.ids) copy.ids.push(id)
    copy.logits = this.logits === null ? null : this.logits.slice()
    return copy
  }

  get bytes(): number {
    return this.layers.reduce((sum, state) => sum + (state === null ? 0 : state.bytes), 0)
  }

  /** Nothing may run on it any more: layers have different positions since `error` ended a call. */
  tear(error: unknown): void {
    this.#torn = { by: error }
  }

  get isTorn(): boolean {
    return this.#torn !== null
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
