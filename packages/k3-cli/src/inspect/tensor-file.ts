import { openFile } from '@k3/safetensors'
import type { Inspection } from './inspection.js'
import { grouped, table } from './table.js'

/** One tensor of a file: offset and size in bytes, the offset from the start of the file. */
export interface TensorRow {
  readonly name: string
  readonly dtype: string
  readonly shape: readonly number[]
  readonly offset: number
  readonly bytes: number
}

/** The columns of a tensor as the reader gives it. */
export const tensorRow = (tensor: {
  readonly name: string
  readonly dtype: string
  readonly shape: readonly number[]
  readonly fileOffset: number
  readonly byteLength: number
}): TensorRow => ({
  name: tensor.name,
  dtype: tensor.dtype,
  shape: tensor.shape,
  offset: tensor.fileOffset,
  bytes: tensor.byteLength
})

/** Names from a file can hold anything; escaped, they cannot write to the terminal. */
export const tensorTable = (rows: readonly TensorRow[]): string =>
  table(
    ['offset', 'bytes', 'dtype', 'shape', 'tensor'],
    rows.map(({ name, dtype, shape, offset, bytes }) => [offset, bytes, dtype, `[${shape}]`, escaped(name)])
  )

/** A name as it may stand on a terminal. */
export const escaped = (name: string): string => JSON.stringify(name).slice(1, -1)

/** Checks the header of one safetensors file against its size. @throws ERR_SAFETENSORS_* */
export const inspectFile = async (path: string): Promise<Inspection> => {
  await using file = await openFile(path)
  const { tensors } = file
  const rows = Array.from(tensors, tensorRow)
  const metadata = tensors.metadata === null ? null : Object.fromEntries(tensors.metadata)
  const { dataOffset: header_bytes, dataBytes: tensor_bytes, fileBytes: file_bytes } = tensors
  const summary = `${path}: in order, ${grouped(rows.length)} tensors, ${grouped(tensor_bytes)} bytes\n`
  return {
    object: { file: path, header_bytes, tensor_bytes, file_bytes, metadata, tensors: rows },
    text: `${summary}${tensorTable(rows)}`
  }
}
