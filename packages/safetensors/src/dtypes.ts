import type { SafetensorsErrorCode } from './errors.ts'

/** Bytes of a group of elements: `F4` packs 2 elements into 1 byte, `F6_*` 4 into 3; all others are groups of one. */
const DTYPES = [
  ['BOOL', 1, 1],
  ['F4', 2, 1],
  ['F6_E2M3', 4, 3],
  ['F6_E3M2', 4, 3],
  ['U8', 1, 1],
  ['I8', 1, 1],
  ['F8_E5M2', 1, 1],
  ['F8_E4M3', 1, 1],
  ['F8_E8M0', 1, 1],
  ['F8_E4M3FNUZ', 1, 1],
  ['F8_E5M2FNUZ', 1, 1],
  ['I16', 1, 2],
  ['U16', 1, 2],
  ['F16', 1, 2],
  ['BF16', 1, 2],
  ['I32', 1, 4],
  ['U32', 1, 4],
  ['F32', 1, 4],
  ['C64', 1, 8],
  ['F64', 1, 8],
  ['I64', 1, 8],
  ['U64', 1, 8]
] as const

/** Element type of a tensor, as the header spells it (case-sensitive). */
export type Dtype = (typeof DTYPES)[number][0]

/** Names in code order: `DTYPE_NAMES[code]`. */
export const DTYPE_NAMES: readonly Dtype[] = DTYPES.map((row) => row[0])

const GROUP_ELEMENTS = Uint8Array.from(DTYPES, (row) => row[1])
const GROUP_BYTES = Uint8Array.from(DTYPES, (row) => row[2])
const CODES = new Map<string, number>(DTYPE_NAMES.map((name, code) => [name, code]))

/** Code of a dtype name, or -1 for a name the format does not have. */
export function dtypeCode(name: string): number {
  const code = CODES.get(name)
  return code === undefined ? -1 : code
}

/** Product of `dims[from..to)`; Infinity above 2^53 - 1. A dimension of 0 wins over any overflow. */
function elementCount(dims: ArrayLike<number>, from: number, to: number): number {
  let count = 1
  for (let i = from; i < to; i++) count *= dims[i]!
  if (count <= Number.MAX_SAFE_INTEGER) return count
  for (let i = from; i < to; i++) if (dims[i] === 0) return 0
  return Number.POSITIVE_INFINITY
}

/** Why a shape has no byte length. */
export type ExtentFault = Extract<
  SafetensorsErrorCode,
  'ERR_SAFETENSORS_SHAPE_OVERFLOW' | 'ERR_SAFETENSORS_SUB_BYTE'
>

/**
 * Bytes of a tensor of shape `dims[from..to)`, or the code of the rule the shape breaks.
 * The dimensions must be safe integers >= 0.
 */
export function extentBytes(
  code: number,
  dims: ArrayLike<number>,
  from: number,
  to: number
): number | ExtentFault {
  const groupElements = GROUP_ELEMENTS[code]!
  const count = elementCount(dims, from, to)
  if (count === Number.POSITIVE_INFINITY) return 'ERR_SAFETENSORS_SHAPE_OVERFLOW'
  if (count % groupElements !== 0) return 'ERR_SAFETENSORS_SUB_BYTE'
  const bytes = (count / groupElements) * GROUP_BYTES[code]!
  return bytes <= Number.MAX_SAFE_INTEGER ? bytes : 'ERR_SAFETENSORS_SHAPE_OVERFLOW'
}

const SHOWN_DIMS = 16

/** `BF16 [7168,3584]`, cut to what a message can hold. */
export function formatExtent(code: number, dims: readonly number[]): string {
  const more = dims.length > SHOWN_DIMS ? ',…' : ''
  return `${DTYPE_NAMES[code]} [${dims.slice(0, SHOWN_DIMS).join()}${more}]`
}

/** What to say about an `ExtentFault`. */
export function extentMessage(fault: ExtentFault, code: number, dims: readonly number[]): string {
  const extent = formatExtent(code, dims)
  return fault === 'ERR_SAFETENSORS_SUB_BYTE'
    ? `expected a whole number of bytes, found ${extent}: its packed elements end inside a byte`
    : `expected a size below 2^53 bytes, found ${extent}`
}
