import type { ModelOptions } from '@k3/engine'
import { LatentMoe } from '@k3/engine/layers'
import { RoutingTrace } from '@k3/moe-cache/traces'

type WrapLayer = NonNullable<NonNullable<ModelOptions['parts']>['layer']>
type Layer = ReturnType<WrapLayer>

/** Writes down what the routers of a model choose, pass by pass; a pass that was given up is left out. */
export class RoutingRecorder {
  readonly #layers: number[] = []
  #trace = new RoutingTrace(1)
  #pass: { readonly layer: number; readonly ids: Int32Array; readonly tokens: number }[] = []

  /** Watches a layer; give it to `openModel` as `parts.layer`. */
  readonly watch: WrapLayer = (layer, { index }) => {
    if (!(layer instanceof LatentMoe)) return layer
    this.#layers.push(index)
    return new WatchedMoe(layer, (chosen, tokens) => this.#record(index, chosen, tokens))
  }

  /** What was recorded so far. */
  get trace(): RoutingTrace {
    return this.#trace
  }

  /** Begins a trace of a router that picks topK experts. */
  start(topK: number): void {
    this.#trace = new RoutingTrace(topK)
    this.#pass = []
  }

  #record(layer: number, chosen: Int32Array, tokens: number): void {
    if (layer === this.#layers[0]) this.#pass = []
    this.#pass.push({ layer, ids: chosen.slice(0, tokens * this.#trace.topK), tokens })
    if (layer !== this.#layers.at(-1)) return
    for (const { layer: of, ids, tokens: count } of this.#pass) this.#trace.record(of, ids, count)
  }
}

class WatchedMoe implements Layer {
  readonly #layer: LatentMoe
  readonly #chose: (chosen: Int32Array, tokens: number) => void

  constructor(layer: LatentMoe, chose: (chosen: Int32Array, tokens: number) => void) {
    this.#layer = layer
    this.#chose = chose
  }

  createState(): null {
    return this.#layer.createState()
  }

  forward(...[x, state, out, tokens]: Parameters<Layer['forward']>): void {
    this.#layer.forward(x, state, out, tokens)
    this.#chose(this.#layer.routing.chosen, tokens)
  }
}
