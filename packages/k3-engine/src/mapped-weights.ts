import { createLinear, createLinearGroup, widen } from '@k3/bf16-linear'
import { mapReadOnly, type Region } from '@k3/uring'
import type { Checkpoint, Extent } from './checkpoint/types.js'
import type { Linears } from './interfaces.js'
import type { NativeChoice } from './layer-parts.js'
import { EMBEDDING, type Trunk } from './trunk.js'
import type { Weights } from './weights-location.js'

/** Trunk weights read through read-only mappings of the shards: what is used is paged in, nothing is copied. */
export class MappedWeights implements Trunk {
  readonly bytesRead = 0
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
        const extent = this.#checkpoint.extent(name)
        const [rows, cols] = extent.shape as [number, number]
        return createLinear({ weights: this.#locate(extent), rows, cols }, this.#native)
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

  tensor<Op>(name: string, bind: (weights: Weights) => Op): () => Op {
    const op = bind(this.#locate(this.#checkpoint.extent(name)))
    return () => op
  }

  embed(ids: ArrayLike<number>, out: Float32Array): void {
    const { region, offset } = this.#locate(this.#checkpoint.extent(EMBEDDING))
    const width = this.#checkpoint.config.hiddenSize
    for (let row = 0; row < ids.length; row++)
      out.set(widen({ region, offset: offset + 2 * ids[row]! * width }, width), row * width)
  }

  begin(): void {
    // pages come when they are touched
  }

  enter(): void {
    // likewise
  }

  end(): void {
    // likewise
  }

  has(): boolean {
    return true
  }

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
