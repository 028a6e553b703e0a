import { checkInteger, ExpertCacheError } from './errors.js'
import { grown } from './growable.js'
import { MAX_EXPERTS, MAX_LAYERS } from './limits.js'

const PAIR_BYTES = 8

const malformed = (message: string, fields: Readonly<Record<string, number>>): ExpertCacheError =>
  new ExpertCacheError('ERR_MOE_CACHE_TRACE', message, fields)

const isBelow = (value: unknown, limit: number): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < limit

const parseLine = (text: string, line: number): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return { ...value }
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
  }
  throw malformed(`line ${line} of the trace must be a JSON object`, { line })
}

/**
 * What a router chose, in order: records of (layer, topK distinct experts, best score first).
 *
 * The binary form is the records' (layer, expert) pairs as little-endian int32 with no header, 8 bytes a pair.
 */
export class RoutingTrace {
  readonly topK: number
  #layers = new Int32Array(0)
  /** [length, topK] */
  #experts = new Int32Array(0)
  #length = 0

  /** An empty trace to `record` into. @throws ERR_MOE_CACHE_ARGUMENT (RangeError) when topK is not a positive integer */
  constructor(topK: number) {
    checkInteger('topK', topK, 1, MAX_EXPERTS)
    this.topK = topK
  }

  /**
   * Reads the binary form.
   * @throws ERR_MOE_CACHE_TRACE when it is not whole records of topK distinct experts of one layer
   */
  static fromBytes(bytes: Uint8Array, topK: number): RoutingTrace {
    const trace = new RoutingTrace(topK)
    const recordBytes = PAIR_BYTES * topK
    if (bytes.byteLength % recordBytes !== 0) {
      throw malformed(
        `the trace must be a multiple of ${recordBytes} bytes (${topK} pairs of int32), found ${bytes.byteLength}`,
        { bytes: bytes.byteLength, recordBytes }
      )
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const ids = new Int32Array(topK)
    for (let start = 0; start < bytes.byteLength; start += recordBytes) {
      const layer = view.getInt32(start, true)
      for (let i = 0; i < topK; i++) {
        const offsetBytes = start + i * PAIR_BYTES
        const found = view.getInt32(offsetBytes, true)
        if (found !== layer) {
          throw malformed(
            `the ${topK} pairs of a record must be of one layer, found layer ${found} after ${layer} at ` +
              `byte ${offsetBytes}; is topK right?`,
            { offsetBytes, layer, found }
          )
        }
        ids[i] = view.getInt32(offsetBytes + 4, true)
      }
      trace.#append(layer, ids, `the record at byte ${start}`, { offsetBytes: start })
    }
    return trace
  }

  /**
   * Reads JSON lines: a first line `{"moe_layers":[…],"top_k":n}`, then one line a token in decoding order whose
   * `experts[j]` are the top-k ids of layer `moe_layers[j]`. Other fields are not read.
   * @throws ERR_MOE_CACHE_TRACE with the line number when a line is not that
   */
  static fromJsonLines(text: string): RoutingTrace {
    const lines = text.split('\n')
    if (lines.at(-1) === '') lines.pop()
    const { moe_layers: layers, top_k: topK } = parseLine(lines[0]!, 1)
    if (!Array.isArray(layers) || !isBelow(topK, MAX_EXPERTS) || topK === 0) {
      throw malformed('line 1 of the trace must hold moe_layers (an array) and top_k (a positive integer)', {
        line: 1
      })
    }
    const trace = new RoutingTrace(topK)
    for (let index = 1; index < lines.length; index++) {
      const line = index + 1
      const { experts } = parseLine(lines[index]!, line)
      if (!Array.isArray(experts) || experts.length !== layers.length) {
        throw malformed(`line ${line} of the trace must hold experts of ${layers.length} layers`, { line })
      }
      for (const [j, ids] of experts.entries()) trace.#append(layers[j], ids, `line ${line}`, { line })
    }
    return trace
  }

  /** Number of records. */
  get length(): number {
    return this.#length
  }

  /** Layer of record i. */
  layerAt(i: number): number {
    checkInteger('i', i, 0, this.#length - 1)
    return this.#layers[i]!
  }

  /** [topK] experts of record i, best score first; a view into the trace. */
  expertsAt(i: number): Int32Array {
    checkInteger('i', i, 0, this.#length - 1)
    return this.#experts.subarray(i * this.topK, (i + 1) * this.topK)
  }

  /**
   * Appends what the router chose for one token in one layer. `ids`: [topK] distinct, best score first; copied.
   * @throws ERR_MOE_CACHE_TRACE when it is not
   */
  record(layer: number, ids: ArrayLike<number>): void {
    this.#append(layer, ids, `record ${this.#length}`, { record: this.#length })
  }

  /** The binary form. */
  toBytes(): Uint8Array {
    const bytes = new Uint8Array(this.#length * this.topK * PAIR_BYTES)
    const view = new DataView(bytes.buffer)
    for (let i = 0; i < this.#length * this.topK; i++) {
      view.setInt32(i * PAIR_BYTES, this.#layers[Math.floor(i / this.topK)]!, true)
      view.setInt32(i * PAIR_BYTES + 4, this.#experts[i]!, true)
    }
    return bytes
  }

  /**
   * Decoding order from a layer-major recording (all positions of a layer, then the next layer), as an engine without
   * a state cache makes by running the whole prompt again for each token. Such a recording repeats every earlier
   * position in each sweep, so only the last sweep is kept; replaying the rest would credit the cache with re-reads.
   * @throws ERR_MOE_CACHE_TRACE when the last sweep has not the same number of positions in each layer
   */
  lastSweepInDecodeOrder(): RoutingTrace {
    const starts: number[] = []
    for (let i = this.#length - 1; i >= 0; i--) {
      const isFirst = i === 0 || this.#layers[i - 1] !== this.#layers[i]
      if (isFirst) starts.unshift(i)
      if (i > 0 && this.#layers[i - 1]! > this.#layers[i]!) break
    }
    const sweep = new RoutingTrace(this.topK)
    if (starts.length === 0) return sweep
    const positions = (this.#length - starts[0]!) / starts.length
    for (const [j, start] of starts.entries()) {
      if (start === starts[0]! + j * positions) continue
      throw malformed(
        `the last sweep must have the same number of positions in each layer, but layer ${this.#layers[start]} ` +
          `starts at record ${start}, expected ${starts[0]! + j * positions}`,
        { record: start, layer: this.#layers[start]! }
      )
    }
    for (let position = 0; position < positions; position++) {
      for (const start of starts) sweep.record(this.#layers[start]!, this.expertsAt(start + position))
    }
    return sweep
  }

  #append(layer: unknown, ids: unknown, where: string, fields: Readonly<Record<string, number>>): void {
    const at = this.#length * this.topK
    this.#layers = grown(this.#layers, this.#length + 1, 0)
    this.#experts = grown(this.#experts, at + this.topK, 0)
    if (!isBelow(layer, MAX_LAYERS)) {
      throw malformed(`${where} has layer ${String(layer)}, expected 0 to ${MAX_LAYERS - 1}`, fields)
    }
    const list = Array.isArray(ids) || ids instanceof Int32Array ? ids : []
    if (list.length !== this.topK) {
      throw malformed(`${where} must have ${this.topK} experts, found ${list.length}`, fields)
    }
    for (const [i, expert] of list.entries()) {
      if (!isBelow(expert, MAX_EXPERTS) || list.indexOf(expert) !== i) {
        throw malformed(
          `${where} must have distinct experts from 0 to ${MAX_EXPERTS - 1}, found ${String(expert)}`,
          fields
        )
      }
      this.#experts[at + i] = expert
    }
    this.#layers[this.#length++] = layer
  }
}
