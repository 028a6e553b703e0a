/**
 * Intermediate rows, shared by all layers: layers run one after the other, so the same name and width is the same
 * memory. Nothing in it survives from one layer to the next.
 */
export class Scratch {
  readonly maxTokens: number
  readonly #rows = new Map<string, Float32Array>()

  constructor(maxTokens: number) {
    this.maxTokens = maxTokens
  }

  /** f32 [maxTokens, width] */
  rows(name: string, width: number): Float32Array {
    const key = `${name} ${width}`
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const rows = new Float32Array(this.maxTokens * width)
    this.#rows.set(key, rows)
    return rows
  }

  get bytes(): number {
    let sum = 0
    for (const rows of this.#rows.values()) sum += rows.byteLength
    return sum
  }
}
