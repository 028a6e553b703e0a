import { DTYPE_NAMES, type Dtype } from './dtypes.ts'
import { quote, SafetensorsError } from './errors.ts'

/** One tensor of a file; made on demand and owned by the caller. All positions are bytes. */
export interface TensorInfo {
  readonly name: string
  readonly dtype: Dtype
  /** Outermost dimension first; empty for a scalar. */
  readonly shape: readonly number[]
  /** Range within the data area, as the header states it. */
  readonly begin: number
  readonly end: number
  /** Position of the first byte from the start of the file: `dataOffset + begin`. */
  readonly fileOffset: number
  /** `end - begin`. */
  readonly byteLength: number
}

/** Validated columns of a header, one row a tensor, in header order. */
export interface TensorColumns {
  names: readonly string[]
  dtypes: Uint8Array
  begins: Float64Array
  ends: Float64Array
  /** All shapes, one after the other. */
  dims: Float64Array
  /** Shape of row i is `dims[dimStarts[i] .. dimStarts[i + 1])`. */
  dimStarts: Uint32Array
}

/**
 * The tensors of one header, in header order. Kept as columns: 5,404 tensors of a real shard are a few arrays and
 * their names, and a `TensorInfo` exists only while someone looks at it.
 */
export class TensorTable {
  /** The file the header came from, as errors name it; null for bytes without a name. */
  readonly file: string | null
  /** `__metadata__`, or null when the header has none. */
  readonly metadata: ReadonlyMap<string, string> | null
  /** Where the data area starts in the file: 8 + header length. */
  readonly dataOffset: number
  /** Bytes of all tensors; the file has `dataOffset + dataBytes` bytes. */
  readonly dataBytes: number
  private readonly columns: TensorColumns
  private rows: ReadonlyMap<string, number> | null = null

  constructor(
    file: string | null,
    metadata: ReadonlyMap<string, string> | null,
    dataOffset: number,
    dataBytes: number,
    columns: TensorColumns
  ) {
    this.file = file
    this.metadata = metadata
    this.dataOffset = dataOffset
    this.dataBytes = dataBytes
    this.columns = columns
  }

  /** Number of tensors. */
  get size(): number {
    return this.columns.names.length
  }

  /** Size in bytes of the file this header describes. */
  get fileBytes(): number {
    return this.dataOffset + this.dataBytes
  }

  names(): readonly string[] {
    return this.columns.names
  }

  has(name: string): boolean {
    return this.rowOf().has(name)
  }

  /** @throws ERR_SAFETENSORS_TENSOR_NOT_FOUND */
  get(name: string): TensorInfo {
    const row = this.rowOf().get(name)
    if (row === undefined) {
      throw new SafetensorsError(
        'ERR_SAFETENSORS_TENSOR_NOT_FOUND',
        `no tensor ${quote(name)} among ${this.size}`,
        { file: this.file, tensor: name }
      )
    }
    return this.at(row)
  }

  *[Symbol.iterator](): IterableIterator<TensorInfo> {
    for (let row = 0; row < this.size; row++) yield this.at(row)
  }

  /** Row of each name; built when it is first asked for, since whoever takes all tensors in order never does. */
  private rowOf(): ReadonlyMap<string, number> {
    if (this.rows === null) this.rows = new Map(this.columns.names.map((name, row) => [name, row]))
    return this.rows
  }

  private at(row: number): TensorInfo {
    const { names, dtypes, begins, ends, dims, dimStarts } = this.columns
    const shape: number[] = []
    for (let i = dimStarts[row]!; i < dimStarts[row + 1]!; i++) shape.push(dims[i]!)
    const begin = begins[row]!
    const end = ends[row]!
    return {
      name: names[row]!,
      dtype: DTYPE_NAMES[dtypes[row]!]!,
      shape,
      begin,
      end,
      fileOffset: this.dataOffset + begin,
      byteLength: end - begin
    }
  }
}
