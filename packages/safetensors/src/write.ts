import { randomBytes } from 'node:crypto'
import { open, rename, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Dtype, dtypeCode, extentBytes, extentMessage } from './dtypes.ts'
import { type Fault, quote, SafetensorsError, type SafetensorsErrorCode } from './errors.ts'
import { PREFIX_BYTES } from './header.ts'
import { MAX_HEADER_BYTES } from './limits.ts'

/** A tensor as the header describes it; `shape` outermost dimension first. */
export interface TensorSpec {
  name: string
  dtype: Dtype
  shape: readonly number[]
}

/** A tensor to write. `data`: its little-endian bytes, borrowed until the write has ended. */
export interface TensorSource extends TensorSpec {
  data: ArrayBufferView
}

type Metadata = Readonly<Record<string, string>>

/**
 * Start of a safetensors file: length field and compact JSON, padded with spaces to a multiple of 8 bytes.
 * Members and ranges follow in the order given, without gaps: give all F32, then BF16, then U8 tensors, each sorted
 * by name, to get the layout of the released shards.
 * @returns u8 [8 + N], owned by the caller
 * @throws ERR_SAFETENSORS_DTYPE_UNKNOWN, _SHAPE_TYPE, _DIM_NOT_INTEGER, _SHAPE_OVERFLOW, _SUB_BYTE, _DUPLICATE_TENSOR,
 *   _RESERVED_NAME, _JSON_STRING, _METADATA_VALUE, _HEADER_TOO_LARGE when the file could not be read again
 */
export function formatHeader(tensors: Iterable<TensorSpec>, metadata?: Metadata): Uint8Array {
  const seen = new Set<string>()
  const members = metadata === undefined ? [] : [`"__metadata__":${formatMetadata(metadata)}`]
  let begin = 0
  for (const tensor of tensors) {
    const { name, dtype, shape } = tensor
    checkName(name, seen)
    const end = begin + tensorBytes(tensor)
    if (end > Number.MAX_SAFE_INTEGER) {
      throw refusal('ERR_SAFETENSORS_SHAPE_OVERFLOW', 'the file would pass 2^53 bytes', { tensor: name })
    }
    members.push(
      `${JSON.stringify(name)}:{"dtype":"${dtype}","shape":[${shape.join()}],"data_offsets":[${begin},${end}]}`
    )
    begin = end
  }
  const json = Buffer.from(`{${members.join()}}`)
  const headerBytes = Math.ceil(json.byteLength / 8) * 8
  if (headerBytes > MAX_HEADER_BYTES) {
    throw refusal(
      'ERR_SAFETENSORS_HEADER_TOO_LARGE',
      `the header would have ${headerBytes} bytes, the format ends at ${MAX_HEADER_BYTES}: write several files`
    )
  }
  const bytes = new Uint8Array(PREFIX_BYTES + headerBytes).fill(0x20)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(headerBytes), true)
  bytes.set(json, PREFIX_BYTES)
  return bytes
}

function refusal(code: SafetensorsErrorCode, message: string, fault: Fault = {}): SafetensorsError {
  return new SafetensorsError(code, message, fault)
}

const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text)

function checkName(name: string, seen: Set<string>): void {
  if (name === '__metadata__') {
    throw refusal('ERR_SAFETENSORS_RESERVED_NAME', 'this name is taken by the metadata of the file', {
      tensor: name
    })
  }
  if (!isWellFormed(name)) {
    throw refusal('ERR_SAFETENSORS_JSON_STRING', 'half a surrogate pair in a name: UTF-8 cannot hold it', {
      tensor: name
    })
  }
  if (seen.has(name)) throw refusal('ERR_SAFETENSORS_DUPLICATE_TENSOR', 'name given twice', { tensor: name })
  seen.add(name)
}

function formatMetadata(metadata: Metadata): string {
  for (const [key, value] of Object.entries(metadata)) {
    if (typeof value !== 'string') {
      throw refusal(
        'ERR_SAFETENSORS_METADATA_VALUE',
        `metadata ${quote(key)}: expected a string, found ${typeof value}`
      )
    }
    if (!isWellFormed(key) || !isWellFormed(value)) {
      throw refusal('ERR_SAFETENSORS_JSON_STRING', `metadata ${quote(key)}: half a surrogate pair`)
    }
  }
  return JSON.stringify(metadata)
}

function tensorBytes({ name, dtype, shape }: TensorSpec): number {
  const code = dtypeCode(dtype)
  if (code < 0) throw refusal('ERR_SAFETENSORS_DTYPE_UNKNOWN', `no dtype ${quote(dtype)}`, { tensor: name })
  if (!Array.isArray(shape)) {
    throw refusal('ERR_SAFETENSORS_SHAPE_TYPE', 'shape must be an array of integers', { tensor: name })
  }
  const wrong = shape.find((dim) => !Number.isSafeInteger(dim) || dim < 0)
  if (wrong !== undefined) {
    throw refusal(
      'ERR_SAFETENSORS_DIM_NOT_INTEGER',
      `expected dimensions in 0 .. 2^53 - 1, found ${String(wrong)}`,
      { tensor: name }
    )
  }
  const bytes = extentBytes(code, shape, 0, shape.length)
  if (typeof bytes === 'string') throw refusal(bytes, extentMessage(bytes, code, shape), { tensor: name })
  return bytes
}

/**
 * Writes a small safetensors file: under a temporary name beside `path`, flushed, then renamed, so that `path` holds
 * the old file or the whole new one. Tensors are stored in the order given (see `formatHeader`); start with the
 * widest dtype to keep every tensor aligned.
 * @throws what formatHeader throws; ERR_SAFETENSORS_SIZE_MISMATCH when `data` is not as long as dtype and shape say;
 *   ERR_SAFETENSORS_IO with the system error as `cause`
 */
export async function writeFile(
  path: string,
  tensors: readonly TensorSource[],
  metadata?: Metadata
): Promise<void> {
  const header = formatHeader(tensors, metadata)
  for (const tensor of tensors) {
    const bytes = tensorBytes(tensor)
    if (tensor.data.byteLength !== bytes) {
      throw refusal(
        'ERR_SAFETENSORS_SIZE_MISMATCH',
        `${tensor.dtype} [${tensor.shape.join()}] has ${bytes} bytes, data has ${tensor.data.byteLength}`,
        { file: path, tensor: tensor.name }
      )
    }
  }
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.part`)
  try {
    await writeParts(temporary, [header, ...tensors.map((tensor) => tensor.data)])
    await rename(temporary, path)
  } catch (cause) {
    await unlink(temporary).catch(ignoreMissing)
    throw refusal('ERR_SAFETENSORS_IO', `cannot write: ${String(cause)}`, { file: path, cause })
  }
}

async function writeParts(path: string, parts: readonly ArrayBufferView[]): Promise<void> {
  const handle = await open(path, 'wx')
  try {
    for (const part of parts) {
      await handle.writeFile(new Uint8Array(part.buffer, part.byteOffset, part.byteLength))
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The temporary file is absent when it could not even be created; the write error says why. */
function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}
