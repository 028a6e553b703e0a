// Operator goldens of fixtures/ops for the tests of the addon packages; tolerances come from the manifest and nowhere else.
import { readFileSync } from 'node:fs'

const folder = new URL('../../../fixtures/ops/', import.meta.url)

interface Tolerance {
  readonly rel_l2?: number
  readonly max_ulp?: number
  readonly exact?: boolean
}

interface Row {
  readonly name: string
  readonly file: string
  readonly op: string
  readonly dims: Readonly<Record<string, number>>
  readonly const: Readonly<Record<string, number>>
  readonly outputs: Readonly<Record<string, Tolerance>>
}

const arrays = {
  F64: Float64Array,
  I64: BigInt64Array,
  F32: Float32Array,
  BF16: Uint16Array,
  U8: Uint8Array
} as const

/** One golden case: inputs and `out.*` tensors by name, in the file's own types (BF16 as raw Uint16Array). */
export class Golden {
  readonly row: Row
  readonly #bytes: Buffer
  readonly #header: Record<string, { dtype: keyof typeof arrays; data_offsets: [number, number] }>

  constructor(row: Row) {
    this.row = row
    this.#bytes = readFileSync(new URL(row.file, folder))
    const headerBytes = Number(this.#bytes.readBigUInt64LE(0))
    this.#header = JSON.parse(this.#bytes.toString('utf8', 8, 8 + headerBytes))
  }

  /** A copy of one tensor, as the array its dtype says. */
  tensor<A = Float32Array>(name: string): A {
    const entry = this.#header[name]
    if (entry === undefined) throw new Error(`${this.row.name} has no tensor ${name}`)
    const data = 8 + Number(this.#bytes.readBigUInt64LE(0))
    const [begin, end] = entry.data_offsets
    const copy = Uint8Array.from(this.#bytes.subarray(data + begin, data + end))
    return new arrays[entry.dtype](copy.buffer) as A
  }

  /** What is wrong with a computed output, measured as fixtures/README.md says; null when it is within tolerance. */
  complaint(output: string, got: Float32Array): string | null {
    const want = this.tensor<Float64Array>(output)
    const tolerance = this.row.outputs[output]
    if (tolerance?.rel_l2 === undefined || tolerance.max_ulp === undefined)
      return `${output} has no tolerance`
    if (got.length !== want.length) return `${output}: ${want.length} numbers expected, ${got.length} found`
    const { relativeL2, maxUlp } = deviation(got, want)
    if (relativeL2 <= tolerance.rel_l2 && maxUlp <= tolerance.max_ulp) return null
    return `${output}: relative L2 ${relativeL2} (at most ${tolerance.rel_l2}), ${maxUlp} ulp (at most ${tolerance.max_ulp})`
  }
}

/** Every golden of an operator. Throws when there is none: a vanished fixture is no pass. */
export const goldens = (op: string): readonly Golden[] => {
  const rows: Row[] = JSON.parse(readFileSync(new URL('manifest.json', folder), 'utf8'))
  const found = rows.filter((row) => row.op === op)
  if (found.length === 0) throw new Error(`no golden of ${op} in ${folder}`)
  return found.map((row) => new Golden(row))
}

/** Raw bf16 numbers as f32, exactly. */
export const widened = (bf16: Uint16Array): Float32Array =>
  new Float32Array(Uint32Array.from(bf16, (h) => h << 16).buffer)

/** |got - want| / |want| over all, and the largest difference in float32 ulp at max(|want|, rms(want)). */
export const deviation = (got: ArrayLike<number>, want: Float64Array) => {
  const square = (sum: number, x: number) => sum + x * x
  const norm = Math.sqrt(want.reduce(square, 0))
  const difference = want.map((w, i) => got[i]! - w)
  const rms = norm / Math.sqrt(want.length)
  const error = Math.sqrt(difference.reduce(square, 0))
  const ulps = difference.map((d, i) => Math.abs(d) / ulp(Math.max(Math.abs(want[i]!), rms)))
  const relativeL2 = norm === 0 ? error : error / norm
  return { relativeL2, maxUlp: ulps.reduce((worst, u) => Math.max(worst, u), 0) }
}

/** Distance between float32 numbers of the magnitude of x >= 0; below the normal range that of the subnormals. */
export const ulp = (x: number): number => {
  const exponent = Math.max(-126, Math.floor(Math.log2(x)))
  const low = 2 ** exponent
  const exact = x < low ? exponent - 1 : x >= 2 * low ? exponent + 1 : exponent
  return 2 ** (Math.max(-126, exact) - 23)
}
