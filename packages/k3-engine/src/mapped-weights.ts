import { createLinear, createLinearGroup, widen } from '@k3/bf16-linear'
import { mapReadOnly, type Region } from '@k3/uring'
import type { Checkpoint, Extent } from './checkpoint/types.js'
import type { Linears, WeightSource } from './interfaces.js'
import type { NativeChoice } from './layer-parts.js'
import type { Weights } from './weights-location.js'

/** Trunk weights read through read-only mappings of the shards: what is used is paged in, nothing is copied. */
export class MappedWeights implements WeightSource {
  readonly #checkpoint: Checkpoint
  readonly #native: NativeChoice
  readonly #regions = new Map<number, Region>()

  constructor(checkpoint: Checkpoint, native: NativeChoice) {
    this.#checkpoint = checkpoint
    this.#native = native
  }

  linears(names: readonly string[]): Linears {
    return createLinearGroup(
      names.map((name) => {
        const { shape } = this.#checkpoint.extent(name)
        return createLinear({ weights: this.tensor(name), rows: shape[0]!, cols: shape[1]! }, this.#native)
      })
    )
  }

  vector(name: string): Float32Array {
    const extent = this.#checkpoint.extent(name)
    const { region, offset } = this.#locate(extent)
    if (extent.dtype === 'BF16') return widen({ region, offset }, extent.bytes / 2)
    // the file promises 8-byte alignment at best, so the bytes are copied out
    const bytes = region.view(offset, extent.bytes).slice()
    return new Float32Array(bytes.buffer)
  }

  tensor(name: string): Weights {
    return this.#locate(this.#checkpoint.extent(name))
  }

  /** Unmaps the shards; ops that are still bound keep theirs until they are collected. */
  close(): void {
    for (const region of this.#regions.values()) region.close()
    this.#regions.clear()
  }

  #locate({ file, offset }: Extent): { region: Region; offset: number } {
    let region = this.#regions.get(file)
    if (region === undefined) {
      region = mapReadOnly(this.#checkpoint.files[file]!)
      this.#regions.set(file, region)
    }
    return { region, offset }
  }
}
