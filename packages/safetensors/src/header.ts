import { DTYPE_NAMES, dtypeCode, extentBytes, extentMessage, formatExtent } from './dtypes.ts'
import { outOfBounds, quote, SafetensorsError, wrongType } from './errors.ts'
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  type IntegerRule,
  JsonScanner,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE
} from './json-scanner.ts'
import { MAX_HEADER_BYTES } from './limits.ts'
import { checkCoverage } from './ranges.ts'
import { RepeatCheck } from './repeat-check.ts'
import { TensorTable } from './tensor-table.ts'

/** Bytes of the length field in front of the header. */
export const PREFIX_BYTES = 8
const METADATA = '__metadata__'
const SPACE = 0x20

const DIMENSION: IntegerRule = {
  subject: 'shape',
  notInteger: 'ERR_SAFETENSORS_DIM_NOT_INTEGER',
  negative: 'ERR_SAFETENSORS_DIM_NEGATIVE'
}
const OFFSET: IntegerRule = {
  subject: 'data_offsets',
  notInteger: 'ERR_SAFETENSORS_OFFSET_NOT_INTEGER',
  negative: 'ERR_SAFETENSORS_OFFSET_NEGATIVE'
}

/** Columns while they grow; plain arrays because the number of tensors is known only at the end. */
interface Rows {
  names: string[]
  dtypes: number[]
  begins: number[]
  ends: number[]
  dims: number[]
  dimStarts: number[]
}

/** What the bytes given to `parseHeader` are the start of. */
export interface HeaderSource {
  /** Name of the file in errors. */
  file?: string | null
  /**
   * Size of the whole file when `bytes` is only its start, or 'implied' when there is no data to check against:
   * then the ranges only have to be consistent with each other. Default: `bytes` is the whole file.
   */
  fileBytes?: number | 'implied'
}

/**
 * Validates the header at the start of a safetensors file.
 * `bytes`: the whole file, or its first 8 + N bytes together with `fileBytes`; read only, not kept.
 * Source: the format text, https://huggingface.co/docs/safetensors.
 * @throws ERR_SAFETENSORS_* for the first rule the header breaks, with tensor and byte offset
 * @throws RangeError (ERR_OUT_OF_RANGE) when `bytes` ends inside the header although `fileBytes` says the file goes on
 */
export function parseHeader(bytes: Uint8Array, source: HeaderSource = {}): TensorTable {
  if (!(bytes instanceof Uint8Array)) throw wrongType('parseHeader: bytes must be a Uint8Array')
  if (typeof source !== 'object' || source === null) throw wrongType('parseHeader: source must be an object')
  const { file = null, fileBytes = bytes.byteLength } = source
  if (file !== null && typeof file !== 'string') throw wrongType('parseHeader: file must be a string or null')
  const knownBytes = fileBytes === 'implied' ? bytes.byteLength : fileBytes
  if (!Number.isSafeInteger(knownBytes) || knownBytes < 0) {
    throw outOfBounds(`parseHeader: fileBytes must be an integer >= 0, not ${String(knownBytes)}`)
  }
  const headerBytes = headerLength(bytes, knownBytes, file)
  const dataOffset = PREFIX_BYTES + headerBytes
  if (bytes.byteLength < dataOffset) {
    throw outOfBounds(`parseHeader: the header needs ${dataOffset} bytes, only ${bytes.byteLength} given`)
  }
  const scanner = new JsonScanner(bytes.subarray(PREFIX_BYTES, dataOffset), file, PREFIX_BYTES)
  const { rows, metadata } = readHeader(scanner, bytes, dataOffset)
  const columns = {
    names: rows.names,
    dtypes: new Uint8Array(rows.dtypes),
    begins: new Float64Array(rows.begins),
    ends: new Float64Array(rows.ends),
    dims: new Float64Array(rows.dims),
    dimStarts: new Uint32Array(rows.dimStarts)
  }
  const dataBytes = fileBytes === 'implied' ? null : fileBytes - dataOffset
  return new TensorTable(
    file,
    metadata,
    dataOffset,
    checkCoverage(columns, dataBytes, { file, dataOffset }),
    columns
  )
}

/**
 * Header length N from the first 8 bytes of a file of `fileBytes` bytes; nothing else of the file is needed, so a
 * false length is refused before memory is allocated for it.
 */
export function headerLength(prefix: Uint8Array, fileBytes: number, file: string | null): number {
  if (fileBytes < PREFIX_BYTES || prefix.byteLength < PREFIX_BYTES) {
    throw new SafetensorsError(
      'ERR_SAFETENSORS_LENGTH_TRUNCATED',
      `expected a length field of 8 bytes, found ${Math.min(fileBytes, prefix.byteLength)}: the file is empty or its download stopped; fetch it again`,
      { file, offset: 0 }
    )
  }
  const length = new DataView(prefix.buffer, prefix.byteOffset, PREFIX_BYTES).getBigUint64(0, true)
  if (length === 0n) {
    throw new SafetensorsError(
      'ERR_SAFETENSORS_HEADER_EMPTY',
      "expected a header, found length 0: even a file without tensors has '{}'",
      { file, offset: 0 }
    )
  }
  if (length > BigInt(MAX_HEADER_BYTES)) {
    throw new SafetensorsError(
      'ERR_SAFETENSORS_HEADER_TOO_LARGE',
      `expected a header of at most ${MAX_HEADER_BYTES} bytes, found length ${length}: this is no safetensors file`,
      { file, offset: 0 }
    )
  }
  const headerBytes = Number(length)
  if (PREFIX_BYTES + headerBytes > fileBytes) {
    throw new SafetensorsError(
      'ERR_SAFETENSORS_HEADER_TRUNCATED',
      `expected at least ${PREFIX_BYTES + headerBytes} bytes for the header, the file has ${fileBytes}: ` +
        'the download stopped inside the header; fetch it again',
      { file, offset: 0 }
    )
  }
  return headerBytes
}

function readHeader(scanner: JsonScanner, bytes: Uint8Array, dataOffset: number) {
  if (bytes[PREFIX_BYTES] !== OPEN_BRACE) {
    throw scanner.error(
      'ERR_SAFETENSORS_HEADER_START',
      0,
      `expected '{' as the first byte, found byte ${bytes[PREFIX_BYTES]}`
    )
  }
  const rows: Rows = {
    names: [],
    dtypes: [],
    begins: [],
    ends: [],
    dims: [],
    dimStarts: [0]
  }
  const repeats = new RepeatCheck()
  let metadata: Map<string, string> | null = null
  scanner.consume(OPEN_BRACE)
  for (let first = true; scanner.next(CLOSE_BRACE, first); first = false) {
    const at = scanner.pos
    scanner.scanKey()
    const name = scanner.string()
    if (name === METADATA) {
      if (metadata !== null) throw scanner.duplicateMember(name, at)
      metadata = readMetadata(scanner)
      continue
    }
    scanner.tensor = name
    if (repeats.isRepeat(name)) {
      throw scanner.error(
        'ERR_SAFETENSORS_DUPLICATE_TENSOR',
        at,
        'this name stands twice in the header: which entry is meant is ambiguous'
      )
    }
    readEntry(scanner, rows)
    rows.names.push(name)
    scanner.tensor = null
  }
  for (let p = PREFIX_BYTES + scanner.pos; p < dataOffset; p++) {
    if (bytes[p] === SPACE) continue
    throw scanner.error(
      'ERR_SAFETENSORS_HEADER_TRAILING',
      p - PREFIX_BYTES,
      `expected only spaces between the header object and the data, found byte ${bytes[p]}`
    )
  }
  return { rows, metadata }
}

function readMetadata(scanner: JsonScanner): Map<string, string> {
  const metadata = new Map<string, string>()
  const byte = scanner.peek()
  const at = scanner.pos
  if (byte !== OPEN_BRACE) {
    scanner.skipValue()
    throw scanner.error(
      'ERR_SAFETENSORS_METADATA_TYPE',
      at,
      `__metadata__: expected an object of strings, found ${scanner.text(at)}`
    )
  }
  scanner.members((name) => {
    if (scanner.peek() !== QUOTE) {
      const valueAt = scanner.pos
      scanner.skipValue()
      throw scanner.error(
        'ERR_SAFETENSORS_METADATA_VALUE',
        valueAt,
        `__metadata__ ${quote(name)}: expected a string, found ${scanner.text(valueAt)}`
      )
    }
    scanner.scanString()
    metadata.set(name, scanner.string())
  })
  return metadata
}

/** Appends one tensor to every column but its name. */
function readEntry(scanner: JsonScanner, rows: Rows): void {
  const byte = scanner.peek()
  const at = scanner.pos
  if (byte !== OPEN_BRACE) {
    scanner.skipValue()
    throw scanner.error(
      'ERR_SAFETENSORS_ENTRY_TYPE',
      at,
      `expected an object with dtype, shape and data_offsets, found ${scanner.text(at)}`
    )
  }
  scanner.consume(OPEN_BRACE)
  const { dtypes, begins, dimStarts } = rows
  const row = rows.names.length
  let extra: Set<string> | null = null
  for (let first = true; scanner.next(CLOSE_BRACE, first); first = false) {
    const keyAt = scanner.pos
    scanner.scanKey()
    if (scanner.stringIs('dtype')) {
      if (dtypes.length > row) throw scanner.duplicateMember('dtype', keyAt)
      dtypes.push(readDtype(scanner, row === 0 ? 0 : dtypes[row - 1]!))
    } else if (scanner.stringIs('shape')) {
      if (dimStarts.length > row + 1) throw scanner.duplicateMember('shape', keyAt)
      readShape(scanner, rows)
    } else if (scanner.stringIs('data_offsets')) {
      if (begins.length > row) throw scanner.duplicateMember('data_offsets', keyAt)
      readOffsets(scanner, rows)
    } else {
      extra ??= new Set()
      scanner.addMember(extra, scanner.string(), keyAt)
      scanner.skipValue()
    }
  }
  checkEntry(scanner, rows, at)
}

/** @param likely code of the tensor before: nearly always the same, and comparing needs no new string */
function readDtype(scanner: JsonScanner, likely: number): number {
  const byte = scanner.peek()
  const at = scanner.pos
  if (byte === QUOTE) {
    scanner.scanString()
    const code = scanner.stringIs(DTYPE_NAMES[likely]!) ? likely : dtypeCode(scanner.string())
    if (code >= 0) return code
  } else {
    scanner.skipValue()
  }
  throw scanner.error(
    'ERR_SAFETENSORS_DTYPE_UNKNOWN',
    at,
    `dtype: expected one of ${DTYPE_NAMES.join(' ')}, found ${scanner.text(at)}: its size cannot be verified`
  )
}

function readShape(scanner: JsonScanner, rows: Rows): void {
  openArray(scanner, 'ERR_SAFETENSORS_SHAPE_TYPE', 'shape: expected an array of integers')
  for (let first = true; scanner.next(CLOSE_BRACKET, first); first = false) {
    rows.dims.push(scanner.integer(DIMENSION))
  }
  rows.dimStarts.push(rows.dims.length)
}

function readOffsets(scanner: JsonScanner, rows: Rows): void {
  const expected = 'data_offsets: expected an array of two integers'
  const at = openArray(scanner, 'ERR_SAFETENSORS_OFFSETS_PAIR', expected)
  let count = 0
  for (; scanner.next(CLOSE_BRACKET, count === 0); count++) {
    const value = scanner.integer(OFFSET)
    if (count === 0) rows.begins.push(value)
    if (count === 1) rows.ends.push(value)
  }
  if (count !== 2) {
    throw scanner.error(
      'ERR_SAFETENSORS_OFFSETS_PAIR',
      at,
      `${expected}, found ${count}: ${scanner.text(at)}`
    )
  }
}

/** Consumes '['; returns its index. */
function openArray(
  scanner: JsonScanner,
  code: 'ERR_SAFETENSORS_SHAPE_TYPE' | 'ERR_SAFETENSORS_OFFSETS_PAIR',
  expected: string
): number {
  const byte = scanner.peek()
  const at = scanner.pos
  if (byte !== OPEN_BRACKET) {
    scanner.skipValue()
    throw scanner.error(code, at, `${expected}, found ${scanner.text(at)}`)
  }
  scanner.consume(OPEN_BRACKET)
  return at
}

function checkEntry(scanner: JsonScanner, rows: Rows, at: number): void {
  const { dtypes, begins, ends, dims, dimStarts } = rows
  const row = rows.names.length
  if (dtypes.length === row || dimStarts.length === row + 1 || begins.length === row) {
    throw memberMissing(scanner, rows, at)
  }
  const begin = begins[row]!
  const end = ends[row]!
  if (end < begin) {
    throw scanner.error(
      'ERR_SAFETENSORS_RANGE_REVERSED',
      at,
      `data_offsets [${begin},${end}] end before they begin`
    )
  }
  const dtype = dtypes[row]!
  const bytes = extentBytes(dtype, dims, dimStarts[row]!, dims.length)
  if (bytes === end - begin) return
  const shape = dims.slice(dimStarts[row]!)
  if (typeof bytes === 'string') throw scanner.error(bytes, at, extentMessage(bytes, dtype, shape))
  throw scanner.error(
    'ERR_SAFETENSORS_SIZE_MISMATCH',
    at,
    `${formatExtent(dtype, shape)} has ${bytes} bytes, data_offsets [${begin},${end}] hold ${end - begin}`
  )
}

function memberMissing(scanner: JsonScanner, rows: Rows, at: number): SafetensorsError {
  const row = rows.names.length
  const missing = [
    rows.dtypes.length === row && 'dtype',
    rows.dimStarts.length === row + 1 && 'shape',
    rows.begins.length === row && 'data_offsets'
  ].filter((member) => member !== false)
  return scanner.error(
    'ERR_SAFETENSORS_MEMBER_MISSING',
    at,
    `an entry needs dtype, shape and data_offsets; missing: ${missing.join(', ')}`
  )
}
