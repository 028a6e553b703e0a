import { MlaCache } from '@k3/mla'
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
    return this.layers.reduce((sum, state) => sum + (state === null ? 0 : bytesHeld(state)), 0)
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

  /**
   * Makes room for `tokens` more: latents get the place of the whole context at once, of which the system gives what is
   * written. Growing step by step would leave as much again as garbage.
   * @throws ERR_K3_CONTEXT_FULL when they do not fit into a context of `contextTokens`
   */
  reserve(tokens: number, contextTokens: number): void {
    this.refuseBeyond(tokens, contextTokens)
    for (const layer of this.layers) {
      if (layer instanceof MlaCache) layer.reserve(contextTokens - layer.length)
    }
  }

  /** @throws ERR_K3_CONTEXT_FULL when `tokens` more do not fit into a context of `contextTokens` */
  refuseBeyond(tokens: number, contextTokens: number): void {
    if (this.position + tokens <= contextTokens) return
    const before = this.position === 0 ? '' : ` after ${this.position} that are in it`
    const message = `${tokens} tokens${before} do not fit into the context of ${contextTokens} that memory was planned for`
    throw new K3Error('ERR_K3_CONTEXT_FULL', message, { have: this.position + tokens, need: contextTokens })
  }
}

/** What a state holds; latents have a place for more, which takes no memory until it is written. */
const bytesHeld = (state: LayerState): number =>
  state instanceof MlaCache ? 4 * state.length * state.rowLength : state.bytes
