import { createExpertMlp, type ExpertMlp } from '@k3/mxfp4'
import type { Checkpoint, ExpertLayout } from './checkpoint/types.js'
import { K3Error } from './errors.js'
import type { ExpertSource } from './interfaces.js'
import type { NativeChoice } from './layer-parts.js'
import type { ExpertActivations } from './model-options.js'

/** The expert op of each layer. Layers with the same arrangement of an expert's tensors share one. */
export class ExpertMlps {
  readonly #checkpoint: Checkpoint
  readonly #native: NativeChoice
  readonly #activations: ExpertActivations
  readonly #byLayout = new Map<string, ExpertMlp>()
  #region: ExpertSource['region'] | null = null

  constructor(checkpoint: Checkpoint, native: NativeChoice, activations: ExpertActivations = 'exact') {
    this.#checkpoint = checkpoint
    this.#native = native
    this.#activations = activations
  }

  /** Where experts will lie; before the first `of`. */
  bind(region: ExpertSource['region']): void {
    this.#region = region
  }

  of(layer: number): ExpertMlp {
    const { layout } = this.#checkpoint.experts(layer)
    const key = Object.values(layout).join(' ')
    let mlp = this.#byLayout.get(key)
    if (mlp === undefined) {
      mlp = this.#create(layout)
      this.#byLayout.set(key, mlp)
    }
    return mlp
  }

  /**
   * Refuses an expert that was just read and has a scale byte that is no number.
   * @throws ERR_K3_EXPERT_SCALE
   */
  validate(layer: number, expert: number, base: number): void {
    try {
      this.of(layer).validate(base)
    } catch (cause) {
      const area = this.#checkpoint.experts(layer)
      const message = `expert ${expert} of layer ${layer} is unusable: ${(cause as Error).message}`
      throw new K3Error('ERR_K3_EXPERT_SCALE', message, { file: this.#checkpoint.files[area.file], cause })
    }
  }

  #create(layout: ExpertLayout): ExpertMlp {
    const { moe, situ } = this.#checkpoint.config
    const shape = { latent: moe.latentSize, inner: moe.intermediateSize, topK: moe.topK, ...situ, layout }
    return createExpertMlp(shape, this.#region!, { ...this.#native, activations: this.#activations })
  }
}
