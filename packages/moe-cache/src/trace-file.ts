import { crc32 } from 'node:zlib'
import { checkInteger, ExpertCacheError } from './errors.js'
import { MAX_EXPERTS, MAX_LAYERS } from './limits.js'
import { RoutingTrace } from './routing-trace.js'

/** A recorded trace and what it was recorded on. The layout is in docs/TRACE_FORMAT.md. */
export interface TraceFile {
  readonly trace: RoutingTrace
  /** Experts of a layer: ids are below it. */
  readonly expertCount: number
  /** Bytes of one expert in its file; 0 when it is not known. */
  readonly expertBytes: number
}

const MAGIC = 'K3TRACE\n'
const VERSION = 1
const HEADER_BYTES = 40
const CHECKSUM_BYTES = 4
const AT = { version: 8, topK: 12, expertCount: 16, layerCount: 20, expertBytes: 24, passes: 32, tokens: 36 }

const refuse = (message: string, fields: Readonly<Record<string, number>>): ExpertCacheError =>
  new ExpertCacheError('ERR_MOE_CACHE_TRACE', message, fields)

/** Records of the first pass: up to where its first layer comes again. */
const passLength = (trace: RoutingTrace): number => {
  for (let i = 1; i < trace.length; i++) if (trace.layerAt(i) === trace.layerAt(0)) return i
  return trace.length
}

/**
 * The bytes of a trace file. The records have to be whole passes through the same layers, as a decoder makes them, with
 * the same number of tokens in all layers of a pass.
 * @throws ERR_MOE_CACHE_TRACE with the record at fault, or the expert that is not below expertCount
 */
export const writeTrace = ({ trace, expertCount, expertBytes }: TraceFile): Uint8Array => {
  checkInteger('expertCount', expertCount, 1, MAX_EXPERTS)
  checkInteger('expertBytes', expertBytes, 0, Number.MAX_SAFE_INTEGER)
  const layers = passLength(trace)
  if (layers > 0 && trace.length % layers !== 0) {
    throw refuse(`the trace ends inside a pass: ${trace.length} records of ${layers} layers`, {
      record: trace.length
    })
  }
  let tokens = 0
  for (let i = 0; i < trace.length; i++) {
    const first = i - (i % layers)
    if (trace.layerAt(i) !== trace.layerAt(i % layers) || trace.tokensAt(i) !== trace.tokensAt(first)) {
      throw refuse(`record ${i} is of another layer or of other tokens than its pass`, { record: i })
    }
    if (i === first) tokens += trace.tokensAt(i)
  }
  const passes = layers === 0 ? 0 : trace.length / layers
  const bytes = new Uint8Array(
    HEADER_BYTES + 2 * layers + passes * 4 + 2 * tokens * layers * trace.topK + CHECKSUM_BYTES
  )
  const view = new DataView(bytes.buffer)
  bytes.set(new TextEncoder().encode(MAGIC))
  view.setUint32(AT.version, VERSION, true)
  view.setUint32(AT.topK, trace.topK, true)
  view.setUint32(AT.expertCount, expertCount, true)
  view.setUint32(AT.layerCount, layers, true)
  view.setBigUint64(AT.expertBytes, BigInt(expertBytes), true)
  view.setUint32(AT.passes, passes, true)
  view.setUint32(AT.tokens, tokens, true)
  for (let i = 0; i < layers; i++) view.setUint16(HEADER_BYTES + 2 * i, trace.layerAt(i), true)
  const end = writePasses(view, { trace, expertCount }, layers)
  view.setUint32(end, crc32(bytes.subarray(0, end)), true)
  return bytes
}

const writePasses = (
  view: DataView,
  { trace, expertCount }: Omit<TraceFile, 'expertBytes'>,
  layers: number
): number => {
  let at = HEADER_BYTES + 2 * layers
  for (let i = 0; i < trace.length; i++) {
    if (i % layers === 0) {
      view.setUint32(at, trace.tokensAt(i), true)
      at += 4
    }
    for (const expert of trace.expertsAt(i)) {
      if (expert >= expertCount) {
        throw refuse(`record ${i} names expert ${expert} of ${expertCount}`, { record: i, expert })
      }
      view.setUint16(at, expert, true)
      at += 2
    }
  }
  return at
}

/**
 * Reads what `writeTrace` wrote.
 * @throws ERR_MOE_CACHE_TRACE with `offsetBytes` when it is another file, another version, cut short, or damaged
 */
export const readTrace = (bytes: Uint8Array): TraceFile => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.byteLength < HEADER_BYTES + CHECKSUM_BYTES) {
    throw refuse(
      `a trace has ${HEADER_BYTES + CHECKSUM_BYTES} bytes at least, this file ${bytes.byteLength}`,
      {
        offsetBytes: bytes.byteLength
      }
    )
  }
  if (new TextDecoder('latin1').decode(bytes.subarray(0, MAGIC.length)) !== MAGIC) {
    throw refuse('the file does not begin with K3TRACE: it is no trace of this format', { offsetBytes: 0 })
  }
  const version = view.getUint32(AT.version, true)
  if (version !== VERSION) {
    throw refuse(`the trace is of version ${version}, this program reads version ${VERSION}`, {
      offsetBytes: AT.version
    })
  }
  const topK = within(view, 'topK', 1, MAX_EXPERTS)
  const expertCount = within(view, 'expertCount', topK, MAX_EXPERTS)
  const layerCount = within(view, 'layerCount', 0, MAX_LAYERS)
  const passes = within(view, 'passes', 0, layerCount === 0 ? 0 : bytes.byteLength)
  const tokens = within(view, 'tokens', passes, bytes.byteLength)
  const expertBytes = Number(view.getBigUint64(AT.expertBytes, true))
  const end = HEADER_BYTES + 2 * layerCount + 4 * passes + 2 * tokens * layerCount * topK
  if (end + CHECKSUM_BYTES !== bytes.byteLength || !Number.isSafeInteger(expertBytes)) {
    const need = end + CHECKSUM_BYTES
    throw refuse(`the header of the trace speaks of ${need} bytes, the file has ${bytes.byteLength}`, {
      offsetBytes: Math.min(need, bytes.byteLength)
    })
  }
  if (view.getUint32(end, true) !== crc32(bytes.subarray(0, end))) {
    throw refuse(`the checksum at byte ${end} of the trace does not match what comes before it`, {
      offsetBytes: end
    })
  }
  const layers = Array.from({ length: layerCount }, (_, i) => view.getUint16(HEADER_BYTES + 2 * i, true))
  const trace = readPasses(view, { topK, expertCount, layers, passes, end })
  return { trace, expertCount, expertBytes }
}

const within = (view: DataView, field: keyof typeof AT, least: number, most: number): number => {
  const value = view.getUint32(AT[field], true)
  if (value >= least && value <= most) return value
  throw refuse(`${field} of the trace must be ${least} to ${most}, found ${value} at byte ${AT[field]}`, {
    offsetBytes: AT[field]
  })
}

interface PassShape {
  readonly topK: number
  readonly expertCount: number
  readonly layers: readonly number[]
  readonly passes: number
  readonly end: number
}

const readPasses = (view: DataView, { topK, expertCount, layers, passes, end }: PassShape): RoutingTrace => {
  const trace = new RoutingTrace(topK)
  let at = HEADER_BYTES + 2 * layers.length
  for (let pass = 0; pass < passes; pass++) {
    const tokens = view.getUint32(at, true)
    const bytes = 2 * tokens * topK * layers.length
    if (tokens === 0 || at + 4 + bytes > end) {
      throw refuse(`pass ${pass} of the trace has ${tokens} tokens at byte ${at}, which does not fit`, {
        offsetBytes: at
      })
    }
    at += 4
    for (const layer of layers) {
      const ids = Int32Array.from({ length: tokens * topK }, (_, i) => view.getUint16(at + 2 * i, true))
      const foreign = ids.findIndex((expert) => expert >= expertCount)
      if (foreign !== -1) {
        const offsetBytes = at + 2 * foreign
        throw refuse(`the trace names expert ${ids[foreign]} of ${expertCount} at byte ${offsetBytes}`, {
          offsetBytes
        })
      }
      recordAt(trace, layer, ids, { tokens, offsetBytes: at })
      at += 2 * ids.length
    }
  }
  if (at !== end) throw refuse(`the passes of the trace end at byte ${at}, not ${end}`, { offsetBytes: at })
  return trace
}

/** As `record`; what it refuses is told with the place in the file. */
const recordAt = (
  trace: RoutingTrace,
  layer: number,
  ids: Int32Array,
  { tokens, offsetBytes }: { tokens: number; offsetBytes: number }
): void => {
  try {
    trace.record(layer, ids, tokens)
  } catch (cause) {
    throw refuse(`${(cause as Error).message}, at byte ${offsetBytes} of the trace`, { offsetBytes })
  }
}
