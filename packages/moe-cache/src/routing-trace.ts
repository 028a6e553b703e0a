import { checkInteger, ExpertCacheError } from './errors.js'
import { grown } from './growable.js'
import { MAX_EXPERTS, MAX_LAYERS } from './limits.js'

const PAIR_BYTES = 8

/** What messages call a record, and its numbers. */
interface Place {
  readonly where: string
  readonly fields: Readonly<Record<string, number>>
}

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
 * What a router chose, in order: records of a layer and, for each token that went through it together, topK distinct
 * experts, best score first.
 */
export class RoutingTrace {
  readonly topK: number
  #layers = new Int32Array(0)
  /** [length + 1] tokens before each record */
  #starts = new Int32Array(1)
  /** [tokens of all records, topK] */
  #experts = new Int32Array(0)
  #length = 0

  /** An empty trace to `record` into. @throws ERR_MOE_CACHE_ARGUMENT (RangeError) when topK is not a positive integer */
  constructor(topK: number) {
    checkInteger('topK', topK, 1, MAX_EXPERTS)
    this.topK = topK
  }

  /**
   * Reads bare pairs: (layer, expert) as little-endian int32, no header, topK pairs a record of one token.
   * @throws ERR_MOE_CACHE_TRACE when it is not whole records of topK distinct experts of one layer
   */
  static fromPairs(bytes: Uint8Array, topK: number): RoutingTrace {
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
      trace.#append(layer, ids, 1, { where: `the record at byte ${start}`, fields: { offsetBytes: start } })
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
      for (const [j, ids] of experts.entries()) {
        trace.#append(layers[j], ids, 1, { where: `line ${line}`, fields: { line } })
      }
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

  /** Tokens of record i. */
  tokensAt(i: number): number {
    checkInteger('i', i, 0, this.#length - 1)
    return this.#starts[i + 1]! - this.#starts[i]!
  }

  /** [tokens, topK] experts of record i, best score first; a view into the trace. */
  expertsAt(i: number): Int32Array {
    checkInteger('i', i, 0, this.#length - 1)
    return this.#experts.subarray(this.#starts[i]! * this.topK, this.#starts[i + 1]! * this.topK)
  }

  /** The distinct experts of record i as an engine asks for them: the router's order for one token, ascending otherwise. */
  unionAt(i: number): Int32Array {
    const experts = this.expertsAt(i)
    return this.tokensAt(i) === 1 ? experts : Int32Array.from(new Set(experts)).sort()
  }

  /**
   * Appends what the router of a layer chose for tokens that went through it together. `ids`: [tokens, topK], distinct
   * for a token, best score first; copied.
   * @throws ERR_MOE_CACHE_TRACE when it is not
   */
  record(layer: number, ids: ArrayLike<number>, tokens = 1): void {
    const record = this.#length
    this.#append(layer, ids, tokens, { where: `record ${record}`, fields: { record } })
  }

  /**
   * Decoding order from a layer-major recording (all positions of a layer, then the next layer), as an engine without
   * a state cache makes by running the whole prompt again for each token. Such a recording repeats every earlier
   * position in each sweep, so only the last sweep is kept; replaying the rest would credit the cache with re-reads.
   * Records are of one token each.
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

  #append(layer: unknown, ids: unknown, tokens: number, { where, fields }: Place): void {
    if (!isBelow(layer, MAX_LAYERS)) {
      throw malformed(`${where} has layer ${String(layer)}, expected 0 to ${MAX_LAYERS - 1}`, fields)
    }
    const list = Array.isArray(ids) || ids instanceof Int32Array ? ids : []
    if (list.length !== tokens * this.topK || tokens < 1) {
      throw malformed(`${where} must have ${this.topK} experts a token, found ${list.length}`, fields)
    }
    const start = this.#starts[this.#length]!
    this.#layers = grown(this.#layers, this.#length + 1, 0)
    this.#starts = grown(this.#starts, this.#length + 2, 0)
    this.#experts = grown(this.#experts, (start + tokens) * this.topK, 0)
    for (let token = 0; token < tokens; token++) {
      const chosen = list.slice(token * this.topK, (token + 1) * this.topK)
      for (const [i, expert] of chosen.entries()) {
        if (!isBelow(expert, MAX_EXPERTS) || chosen.indexOf(expert) !== i) {
          throw malformed(
            `${where} must have distinct experts from 0 to ${MAX_EXPERTS - 1}, found ${String(expert)}`,
            fields
          )
        }
        this.#experts[(start + token) * this.topK + i] = expert
      }
    }
    this.#layers[this.#length++] = layer
    this.#starts[this.#length] = start + tokens
  }
}
