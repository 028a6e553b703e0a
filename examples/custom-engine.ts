// An engine of one's own from k3's parts: another eviction policy, experts from another place, and a layer that is
// watched. What comes out must not change by a bit, because none of the three is arithmetic.
import { closeSync, openSync, readSync } from 'node:fs'
import { openModel } from '@k3/engine'
import { type Checkpoint, openCheckpoint } from '@k3/engine/checkpoint'
import type { ExpertSource, Layer } from '@k3/engine/conformance'
import type { EvictionPolicy } from '@k3/moe-cache'
import { allocRegion, type Region } from '@k3/uring'

/** First in, first out: what was read longest ago goes, however often it was used since. */
export class Fifo implements EvictionPolicy {
  readonly #queue: number[] = []
  readonly #pinned = new Set<number>()

  touch(slot: number): void {
    this.#pinned.add(slot)
    if (!this.#queue.includes(slot)) this.#queue.push(slot)
  }

  release(slot: number, resident: boolean): void {
    this.#pinned.delete(slot)
    if (!resident) this.#queue.splice(this.#queue.indexOf(slot), 1)
  }

  victim(): number {
    const at = this.#queue.findIndex((slot) => !this.#pinned.has(slot))
    return this.#queue.splice(at, 1)[0]!
  }
}

/** Experts read with plain blocking reads when they are needed and forgotten afterwards: the simplest source there is. */
export class BlockingExperts implements ExpertSource {
  readonly region: Region
  reads = 0
  readonly #checkpoint: Checkpoint

  constructor(checkpoint: Checkpoint) {
    this.#checkpoint = checkpoint
    const sizes = checkpoint.plan.map(({ index, ffn }) =>
      ffn === 'moe' ? checkpoint.experts(index).bytes : 0
    )
    this.region = allocRegion(Math.max(...sizes))
  }

  begin(layer: number, ids: Int32Array) {
    const area = this.#checkpoint.experts(layer)
    let given = 0
    const arrive = (positions: Int32Array, bases: Float64Array): number => {
      if (given === ids.length) return 0
      const descriptor = openSync(this.#checkpoint.files[area.file]!, 'r')
      const target = this.region.view(0, area.bytes)
      const got = readSync(descriptor, target, 0, area.bytes, area.base(ids[given]!))
      closeSync(descriptor)
      if (got !== area.bytes) throw new Error(`${got} of ${area.bytes} bytes of an expert could be read`)
      this.reads++
      positions[0] = given++
      bases[0] = 0
      return 1
    }
    return { arrive, end: () => undefined, abort: () => undefined }
  }
}

/** A layer that remembers how large its output was. */
export class Probe implements Layer {
  rms = 0
  readonly #layer: Layer
  readonly #hiddenSize: number

  constructor(layer: Layer, hiddenSize: number) {
    this.#layer = layer
    this.#hiddenSize = hiddenSize
  }

  createState(): ReturnType<Layer['createState']> {
    return this.#layer.createState()
  }

  forward(...[x, state, out, tokens]: Parameters<Layer['forward']>): void {
    this.#layer.forward(x, state, out, tokens)
    const last = out.subarray((tokens - 1) * this.#hiddenSize, tokens * this.#hiddenSize)
    this.rms = Math.sqrt(last.reduce((sum, value) => sum + value * value, 0) / last.length)
  }
}

/** Generates with all three parts swapped. */
export const customEngine = async (dir: string, ids: readonly number[], maxTokens: number) => {
  const experts = new BlockingExperts(await openCheckpoint(dir))
  const probes: Probe[] = []
  const model = await openModel(dir, {
    cacheSlots: 24,
    parts: {
      policy: new Fifo(),
      experts: () => experts,
      layer: (layer, plan, half) => {
        if (half !== 'mixer' || plan.mixer !== 'kda') return layer
        const probe = new Probe(layer, 160)
        probes.push(probe)
        return probe
      }
    }
  })
  try {
    const result = await model.generate({ ids, maxTokens })
    return { ids: result.ids, reads: experts.reads, probes: probes.map(({ rms }) => rms) }
  } finally {
    await model[Symbol.asyncDispose]()
    experts.region.close()
  }
}
