import type { K3Config } from '../config.js'
import { K3Error } from '../errors.js'
import { expertTensorName, expertTensors, type TensorRecord, tensorBytes } from '../tensor-names.js'
import { codes, type ExpertSlot } from './expert-names.js'
import type { TensorProblems } from './problems.js'
import type { ExpertArea, ExpertLayout, Extent } from './types.js'

const PARTS = 6

/** Where the six tensors of each expert of one layer lie, while the headers are read. */
interface Found {
  /** f64 [experts, 6]: absolute offsets, NaN where nothing was found */
  readonly offsets: Float64Array
  /** i32 [experts, 6]: indices of files */
  readonly files: Int32Array
}

/** Gathers the offsets of 494,592 tensors in two typed arrays a layer, then reduces them to one base per expert. */
export class ExpertAreas {
  readonly #experts: number
  readonly #parts: readonly TensorRecord[]
  readonly #layers = new Map<number, Found>()
  /** codes of the names of {@link expertTensors}: what follows the expert's number */
  readonly suffixes: readonly Uint8Array[]

  constructor(config: K3Config) {
    this.#experts = config.moe.expertCount
    this.#parts = expertTensors(config)
    this.suffixes = this.#parts.map(({ name }) => codes(name))
  }

  /** The dtype and shape a part has to have. */
  record(part: number): TensorRecord {
    return this.#parts[part]!
  }

  add({ layer, expert, part }: ExpertSlot, file: number, offset: number): void {
    const { offsets, files } = this.#layer(layer)
    offsets[expert * PARTS + part] = offset
    files[expert * PARTS + part] = file
  }

  addMissing(layer: number, problems: TensorProblems): void {
    const { offsets } = this.#layer(layer)
    for (let at = 0; at < offsets.length; at++) {
      if (!Number.isNaN(offsets[at]!)) continue
      const { name, dtype, shape } = this.#parts[at % PARTS]!
      problems.add({
        kind: 'missing',
        tensor: expertTensorName(layer, Math.floor(at / PARTS), name),
        file: null,
        have: 'missing',
        need: `${dtype} [${shape}]`
      })
    }
  }

  /** @throws ERR_K3_EXPERT_LAYOUT when the experts are not equal contiguous runs in one file */
  area(layer: number, paths: readonly string[]): BoundArea {
    const { offsets, files } = this.#layer(layer)
    const file = files[0]!
    const layout = Array.from({ length: PARTS }, (_, part) => offsets[part]!)
    const start = Math.min(...layout)
    const relative = layout.map((offset) => offset - start)
    const bytes = this.#contiguous(layer, relative, paths[file]!)
    const bases = new Float64Array(this.#experts)
    for (let expert = 0; expert < this.#experts; expert++) {
      const base = offsets[expert * PARTS]! - relative[0]!
      for (let part = 0; part < PARTS; part++) {
        const at = expert * PARTS + part
        if (files[at] === file && offsets[at] === base + relative[part]!) continue
        this.#refuse(layer, expert, part, {
          file: paths[files[at]!]!,
          have: `byte ${offsets[at]} of ${paths[files[at]!]}`,
          need: `byte ${base + relative[part]!} of ${paths[file]}, as in expert 0`
        })
      }
      bases[expert] = base
    }
    return new BoundArea(file, bytes, relative, this.#parts, bases)
  }

  /** Bytes of a run, after checking that the six parts fill it without gap or overlap. */
  #contiguous(layer: number, relative: readonly number[], path: string): number {
    const order = relative.map((_, part) => part).sort((a, b) => relative[a]! - relative[b]!)
    let end = 0
    for (const part of order) {
      if (relative[part] !== end) {
        const have = `byte ${relative[part]} of its expert`
        this.#refuse(layer, 0, part, { file: path, have, need: `byte ${end}: one run without gaps` })
      }
      end += tensorBytes(this.#parts[part]!)
    }
    return end
  }

  #refuse(
    layer: number,
    expert: number,
    part: number,
    where: { file: string; have: string; need: string }
  ): never {
    const tensor = expertTensorName(layer, expert, this.#parts[part]!.name)
    const message = `${where.file}: ${tensor} starts at ${where.have}, expected ${where.need}`
    throw new K3Error('ERR_K3_EXPERT_LAYOUT', message, { tensor, ...where })
  }

  #layer(layer: number): Found {
    let found = this.#layers.get(layer)
    if (found === undefined) {
      const size = this.#experts * PARTS
      found = { offsets: new Float64Array(size).fill(Number.NaN), files: new Int32Array(size) }
      this.#layers.set(layer, found)
    }
    return found
  }
}

/** One layer's experts; can also say where a single one of their tensors lies. */
export class BoundArea implements ExpertArea {
  readonly layout: ExpertLayout

  constructor(
    readonly file: number,
    readonly bytes: number,
    private readonly relative: readonly number[],
    private readonly parts: readonly TensorRecord[],
    private readonly bases: Float64Array
  ) {
    this.layout = named(relative)
  }

  base(expert: number): number {
    const base = this.bases[expert]
    if (base === undefined)
      throw new RangeError(`expert ${expert} does not exist; there are ${this.bases.length}`)
    return base
  }

  /** @param part row of `expertTensors` */
  extent(expert: number, part: number): Extent {
    const record = this.parts[part]!
    const { dtype, shape } = record
    const offset = this.base(expert) + this.relative[part]!
    return { file: this.file, offset, bytes: tensorBytes(record), dtype, shape }
  }
}

function named(relative: readonly number[]): ExpertLayout {
  const [w1Packed, w1Scale, w2Packed, w2Scale, w3Packed, w3Scale] = relative as [
    number,
    number,
    number,
    number,
    number,
    number
  ]
  return { w1Packed, w1Scale, w2Packed, w2Scale, w3Packed, w3Scale }
}
