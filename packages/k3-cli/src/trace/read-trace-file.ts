import { ExpertCacheError } from '@k3/moe-cache'
import { RoutingTrace, readTrace, type TraceFile } from '@k3/moe-cache/traces'
import { inputName, readInput, utf8 } from '../read-text.js'
import type { Terminal } from '../terminal.js'
import { TraceFileError } from './errors.js'

/** A trace and what is to be said about how it was read. */
export interface OpenedTrace extends Omit<TraceFile, 'expertCount'> {
  readonly notes: readonly string[]
}

const BRACE = 0x7b

/**
 * Reads a trace: the format of `k3 trace record`, JSON lines, or, when the top-k of its records is given, bare int32 pairs.
 * A recording that ran the whole sequence again for each token is put in decoding order: only its last sweep counts.
 * @throws ERR_TRACE_FILE with file and offset; UsageError when it cannot be read
 */
export const readTraceFile = async (
  file: string,
  pairs: number | undefined,
  terminal: Terminal
): Promise<OpenedTrace> => {
  const bytes = await readInput(file, terminal)
  try {
    if (pairs !== undefined) return fromPairs(bytes, pairs)
    if (bytes[0] !== BRACE) return { ...readTrace(bytes), notes: [] }
    const trace = RoutingTrace.fromJsonLines(utf8(bytes, inputName(file)))
    return { trace, expertBytes: 0, notes: [] }
  } catch (cause) {
    if (!(cause instanceof ExpertCacheError)) throw cause
    const offset = cause.fields.offsetBytes
    throw new TraceFileError('ERR_TRACE_FILE', file, `${inputName(file)}: ${cause.message}`, {
      cause,
      offset
    })
  }
}

const fromPairs = (bytes: Uint8Array, topK: number): OpenedTrace => {
  const trace = RoutingTrace.fromPairs(bytes, topK)
  const isLayerMajor = trace.length > 1 && trace.layerAt(0) === trace.layerAt(1)
  if (!isLayerMajor) return { trace, expertBytes: 0, notes: [] }
  const sweep = trace.lastSweepInDecodeOrder()
  const note =
    `the recording runs the sequence again for each token: of its ${trace.length} records the last ` +
    `sweep counts, ${sweep.length} records in decoding order`
  return { trace: sweep, expertBytes: 0, notes: [note] }
}
