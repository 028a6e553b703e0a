import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { SafetensorsError } from './errors.ts'
import { headerLength, PREFIX_BYTES, parseHeader } from './header.ts'
import { MAX_READ_BYTES, MAX_READ_CALL_BYTES } from './limits.ts'
import type { TensorTable } from './tensor-table.ts'

/** A regular file with its size at opening; whoever opened it closes `handle`. */
export interface SizedFile {
  path: string
  handle: Pick<FileHandle, 'read' | 'close'>
  bytes: number
}

const ioError = (path: string, action: string, cause: unknown): SafetensorsError =>
  new SafetensorsError('ERR_SAFETENSORS_IO', `cannot ${action}: ${String(cause)}`, { file: path, cause })

/** Opens without blocking, so that a pipe under a shard's name is refused instead of waited for. */
export async function openRegular(path: string): Promise<SizedFile> {
  let handle: FileHandle
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (cause) {
    throw ioError(path, 'open', cause)
  }
  const stat = await handle.stat()
  if (stat.isFile()) return { path, handle, bytes: stat.size }
  await handle.close()
  throw new SafetensorsError('ERR_SAFETENSORS_NOT_A_FILE', 'expected a regular file', { file: path })
}

/** Reads `length` bytes at `offset`, however many calls that takes. */
export async function readExactly(file: SizedFile, offset: number, length: number): Promise<Uint8Array> {
  const { path, handle } = file
  const bytes = new Uint8Array(length)
  let got = 0
  while (got < length) {
    const step = Math.min(length - got, MAX_READ_CALL_BYTES)
    let read: number
    try {
      read = (await handle.read(bytes, got, step, offset + got)).bytesRead
    } catch (cause) {
      throw ioError(path, 'read', cause)
    }
    if (read === 0) {
      throw new SafetensorsError(
        'ERR_SAFETENSORS_READ_EOF',
        `expected ${length} bytes at ${offset}, the file ended after ${got}: it was cut while in use`,
        { file: path, offset: offset + got }
      )
    }
    got += read
  }
  return bytes
}

/**
 * Validates the header of an open file.
 * @param headersOnly the file holds 8 + N bytes and no data: the ranges only have to be consistent
 */
export async function readHeader(file: SizedFile, headersOnly: boolean): Promise<TensorTable> {
  const { path, bytes } = file
  const prefix = await readExactly(file, 0, Math.min(PREFIX_BYTES, bytes))
  const dataOffset = PREFIX_BYTES + headerLength(prefix, bytes, path)
  if (headersOnly && bytes !== dataOffset) {
    throw new SafetensorsError(
      'ERR_SAFETENSORS_NOT_HEADER_ONLY',
      `expected a header alone, ${dataOffset} bytes, the file has ${bytes}: open it without headersOnly`,
      { file: path, offset: dataOffset }
    )
  }
  const header = await readExactly(file, 0, dataOffset)
  return parseHeader(header, { file: path, fileBytes: headersOnly ? 'implied' : bytes })
}

/** One open safetensors file: its validated header, and tensor bytes on request. */
class SafetensorsFile {
  readonly path: string
  readonly tensors: TensorTable
  private readonly file: SizedFile

  constructor(file: SizedFile, tensors: TensorTable) {
    this.path = file.path
    this.tensors = tensors
    this.file = file
  }

  /**
   * Bytes of one tensor in a buffer of their own, so that any typed array fits on them wherever the tensor lies.
   * @returns u8 [byteLength], little-endian elements, owned by the caller
   * @throws ERR_SAFETENSORS_TENSOR_NOT_FOUND, ERR_SAFETENSORS_READ_TOO_LARGE, ERR_SAFETENSORS_READ_EOF, ERR_SAFETENSORS_IO
   */
  async read(name: string): Promise<Uint8Array> {
    const { byteLength, fileOffset } = this.tensors.get(name)
    if (byteLength > MAX_READ_BYTES) {
      throw new SafetensorsError(
        'ERR_SAFETENSORS_READ_TOO_LARGE',
        `expected at most ${MAX_READ_BYTES} bytes for one buffer, the tensor has ${byteLength}: map the file instead`,
        { file: this.path, tensor: name, offset: fileOffset }
      )
    }
    return readExactly(this.file, fileOffset, byteLength)
  }

  /** Closes the file; further calls do nothing. */
  async close(): Promise<void> {
    await this.file.handle.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/**
 * Opens one safetensors file: reads and validates its header against the size of the file, and nothing else.
 * @returns the open file; close it, or declare it with `await using`
 * @throws ERR_SAFETENSORS_IO, ERR_SAFETENSORS_NOT_A_FILE, and what parseHeader throws
 */
export async function openFile(path: string): Promise<SafetensorsFile> {
  const file = await openRegular(path)
  try {
    return new SafetensorsFile(file, await readHeader(file, false))
  } catch (error) {
    await file.handle.close()
    throw error
  }
}
