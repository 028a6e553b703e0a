import { widen } from '@k3/bf16-linear'
import { openFile } from '@k3/safetensors'
import { UsageError } from '../../usage-error.js'

interface StoredTensor {
  readonly dtype: string
  readonly shape: readonly number[]
  /** little-endian, in a buffer of its own */
  readonly bytes: Uint8Array
}

/** The tensors of one golden file: inputs as an engine receives them, outputs in float64. */
export class Golden {
  readonly #file: string
  readonly #tensors: ReadonlyMap<string, StoredTensor>

  private constructor(file: string, tensors: ReadonlyMap<string, StoredTensor>) {
    this.#file = file
    this.#tensors = tensors
  }

  /** @throws ERR_SAFETENSORS_* */
  static async read(path: string): Promise<Golden> {
    await using file = await openFile(path)
    const tensors = new Map<string, StoredTensor>()
    for (const { name, dtype, shape } of file.tensors) {
      tensors.set(name, { dtype, shape, bytes: await file.read(name) })
    }
    return new Golden(path, tensors)
  }

  has(name: string): boolean {
    return this.#tensors.has(name)
  }

  shape(name: string): readonly number[] {
    return this.#tensor(name).shape
  }

  /** A dimension of a tensor, counted from its end: -1 is the innermost. */
  size(name: string, axis: number): number {
    const size = this.shape(name).at(axis)
    if (size === undefined)
      throw new UsageError(`${this.#file}: ${name} has fewer dimensions than its op needs`)
    return size
  }

  bytes(name: string): Uint8Array {
    return this.#tensor(name).bytes
  }

  /** An F32 or BF16 tensor as f32, in a new array. */
  f32(name: string): Float32Array {
    const { dtype, bytes } = this.#tensor(name)
    if (dtype === 'F32') return new Float32Array(bytes.buffer.slice(0))
    if (dtype === 'BF16') return widen(bytes, bytes.length / 2)
    throw new UsageError(`${this.#file}: ${name} is ${dtype}, expected F32 or BF16`)
  }

  /** An F64 or I64 tensor as float64. */
  reference(name: string): Float64Array {
    const { dtype, bytes } = this.#tensor(name)
    if (dtype === 'F64') return new Float64Array(bytes.buffer)
    if (dtype === 'I64') return Float64Array.from(new BigInt64Array(bytes.buffer), Number)
    throw new UsageError(`${this.#file}: ${name} is ${dtype}, expected F64 or I64`)
  }

  #tensor(name: string): StoredTensor {
    const tensor = this.#tensors.get(name)
    if (tensor !== undefined) return tensor
    throw new UsageError(`${this.#file} has no tensor ${name}, which its op needs`)
  }
}
