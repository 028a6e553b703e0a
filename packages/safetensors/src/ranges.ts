import { quote, SafetensorsError } from './errors.ts'
import type { TensorColumns } from './tensor-table.ts'

type Ranges = Pick<TensorColumns, 'names' | 'begins' | 'ends'>

/** Rows by begin, then end, so that an empty range stands in front of the tensor that starts at the same byte. */
function rowsInDataOrder({ begins, ends }: Ranges): Uint32Array {
  const order = Uint32Array.from(begins, (_, row) => row)
  return order.sort((a, b) => begins[a]! - begins[b]! || ends[a]! - ends[b]!)
}

/** True for the usual header, whose members already stand in data order without gap or overlap. */
function areConsecutive({ begins, ends }: Ranges): boolean {
  let reached = 0
  for (let row = 0; row < begins.length; row++) {
    if (begins[row] !== reached) return false
    reached = ends[row]!
  }
  return true
}

/**
 * The ranges must cover the data area from its first to its last byte, each byte once.
 * @param dataBytes size of the data area, or null when only the ranges themselves can say it
 * @returns the size of the data area
 */
export function checkCoverage(
  ranges: Ranges,
  dataBytes: number | null,
  place: { file: string | null; dataOffset: number }
): number {
  const { names, begins, ends } = ranges
  const { file, dataOffset } = place
  const order = areConsecutive(ranges) ? null : rowsInDataOrder(ranges)
  let reached = 0
  let last: string | null = null
  for (let i = 0; i < names.length; i++) {
    const row = order === null ? i : order[i]!
    const begin = begins[row]!
    const tensor = names[row]!
    if (begin < reached) {
      throw new SafetensorsError(
        'ERR_SAFETENSORS_OVERLAP',
        `data byte ${begin} belongs to tensor ${quote(last!)} as well, which ends at ${reached}`,
        { file, tensor, offset: dataOffset + begin }
      )
    }
    if (begin > reached) {
      throw new SafetensorsError(
        'ERR_SAFETENSORS_GAP',
        `data bytes ${reached} to ${begin - 1}, in front of this tensor, belong to no tensor`,
        { file, tensor, offset: dataOffset + reached }
      )
    }
    reached = ends[row]!
    last = tensor
  }
  if (dataBytes !== null) checkEnd(reached, dataBytes, last, place)
  return reached
}

function checkEnd(
  reached: number,
  dataBytes: number,
  tensor: string | null,
  { file, dataOffset }: { file: string | null; dataOffset: number }
): void {
  const sizes = `expected a file of ${dataOffset + reached} bytes, found ${dataOffset + dataBytes}`
  if (reached > dataBytes) {
    throw new SafetensorsError(
      'ERR_SAFETENSORS_DATA_TRUNCATED',
      `${sizes}: ${reached - dataBytes} are missing; the download or copy stopped, fetch the file again`,
      { file, tensor, offset: dataOffset + dataBytes }
    )
  }
  if (reached < dataBytes) {
    throw new SafetensorsError(
      'ERR_SAFETENSORS_TRAILING_DATA',
      `${sizes}: ${dataBytes - reached} bytes after the last tensor belong to none`,
      { file, tensor, offset: dataOffset + reached }
    )
  }
}
