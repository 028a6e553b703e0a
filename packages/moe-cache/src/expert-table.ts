import { grown } from './growable.js'

/** (layer, expert) → int32, as one array a layer: a lookup in the token loop neither hashes nor allocates. */
export class ExpertTable {
  readonly #absent: number
  readonly #valuesOf: Int32Array<ArrayBuffer>[] = []

  /** `absent` is the value of every expert that was not set. */
  constructor(absent: number) {
    this.#absent = absent
  }

  get(layer: number, expert: number): number {
    const values = this.#valuesOf[layer]
    return values === undefined || expert >= values.length ? this.#absent : values[expert]!
  }

  set(layer: number, expert: number, value: number): void {
    while (this.#valuesOf.length <= layer) this.#valuesOf.push(new Int32Array(0))
    const values = grown(this.#valuesOf[layer]!, expert + 1, this.#absent)
    values[expert] = value
    this.#valuesOf[layer] = values
  }
}
