import { createLinear, createLinearGroup } from '@k3/bf16-linear'
import { type K3Config, parseConfig } from '@k3/engine/checkpoint'
import type { ExpertSource, WeightSource } from '@k3/engine/conformance'
import { LatentMoe, type LayerParts, Scratch, unwatched } from '@k3/engine/layers'
import { createExpertMlp } from '@k3/mxfp4'
import { configText, geometryOf } from '@k3/synth'
import { allocRegion } from '@k3/uring'
import { createVectorOps } from '@k3/vector-ops'
import { isRecord } from '../read-json.js'
import { expertRun } from './expert-run.js'
import type { Golden } from './golden.js'
import { dimension, type NativeChoice, type OpCase } from './op-case.js'

/** The weights of a layer golden, under their checkpoint names. */
class GoldenWeights implements WeightSource {
  readonly #golden: Golden
  readonly #native: NativeChoice

  constructor(golden: Golden, native: NativeChoice) {
    this.#golden = golden
    this.#native = native
  }

  linears(names: readonly string[]) {
    return createLinearGroup(
      names.map((name) => {
        const [rows, cols] = [this.#golden.size(name, -2), this.#golden.size(name, -1)]
        return createLinear({ weights: this.#golden.bytes(name), rows, cols }, this.#native)
      })
    )
  }

  vector(name: string): Float32Array {
    return this.#golden.f32(name)
  }

  tensor<Op>(name: string, bind: (weights: Uint8Array) => Op): () => Op {
    const op = bind(this.#golden.bytes(name))
    return () => op
  }
}

/** The configuration a manifest describes by its geometry. Layers know no vocabulary, and the formula's is larger. */
const goldenConfig = ({ name, dims }: OpCase): K3Config => {
  if (!isRecord(dims.geometry)) throw new TypeError(`${name}: the manifest has no dims.geometry`)
  const settings = Object.entries(dims.geometry)
    .filter(([field, value]) => field !== 'vocab_size' && value !== null)
    .map(([field, value]) => `${field}=${String(value)}`)
  return parseConfig(configText(geometryOf('tiny', settings)), name)
}

/** What a layer of a golden is built from; `maxTokens` is the longest piece it will be given. */
export const goldenParts = (one: OpCase, native: NativeChoice, maxTokens: number): LayerParts => ({
  config: goldenConfig(one),
  weights: new GoldenWeights(one.golden, native),
  ops: createVectorOps(native),
  scratch: new Scratch(maxTokens),
  native,
  watch: unwatched
})

/** The mixture of experts of a golden; at most `atOnce` experts are given out at a time. */
export const goldenMoe = (one: OpCase, parts: LayerParts, atOnce: number): LatentMoe => {
  const { moe, situ } = parts.config
  const index = dimension(one, 'layer')
  const prefix = `language_model.model.layers.${index}.block_sparse_moe.experts`
  const runs = Array.from({ length: moe.expertCount }, (_, expert) =>
    expertRun((suffix) => one.golden.bytes(`${prefix}.${expert}.${suffix}`))
  )
  const { layout, bytes } = runs[0]!
  const region = allocRegion(bytes.length * runs.length)
  runs.forEach((run, expert) => void region.view(expert * bytes.length, bytes.length).set(run.bytes))
  const source: ExpertSource = {
    region,
    begin: (_layer, ids) => {
      let given = 0
      const arrive = (positions: Int32Array, bases: Float64Array): number => {
        const count = Math.min(atOnce, ids.length - given)
        for (let i = 0; i < count; i++) {
          positions[i] = given
          bases[i] = ids[given++]! * bytes.length
        }
        return count
      }
      return { arrive, end: () => undefined, abort: () => undefined }
    }
  }
  const spec = { latent: moe.latentSize, inner: moe.intermediateSize, topK: moe.topK, ...situ, layout }
  const mlp = createExpertMlp(spec, region, parts.native)
  runs.forEach((_, expert) => void mlp.validate(expert * bytes.length))
  return new LatentMoe(index, parts, source, mlp)
}
