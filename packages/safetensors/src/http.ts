import { quote, SafetensorsError, type SafetensorsErrorCode, wrongType } from './errors.ts'
import { headerLength, PREFIX_BYTES, parseHeader } from './header.ts'
import { isPlainFileName, parseIndex } from './index-json.ts'
import { HTTP_PARALLEL, MAX_INDEX_BYTES } from './limits.ts'
import { joinShards, type ShardedCheckpoint } from './sharded.ts'
import type { TensorTable } from './tensor-table.ts'

/** How to reach the server. */
export interface HttpOptions {
  /** Called for every request; pass `globalThis.fetch`, or a function that adds retries or credentials. */
  fetch: (url: string, init: RequestInit) => Promise<Response>
  /** Sent with every request, for instance `authorization`. */
  headers?: Readonly<Record<string, string>>
  /** Ends all requests; the promise then rejects with the reason of the signal. */
  signal?: AbortSignal
}

/** One answered range: the bytes, and what must not change between two answers about one file. */
interface RangeAnswer {
  bytes: Uint8Array
  fileBytes: number
  etag: string | null
}

/**
 * Headers of safetensors files on a web server, by HTTP range requests: 8 bytes, then the header; no tensor data.
 * Requests are sent once and never repeated; put retries into `fetch`.
 */
export class HttpRangeSource {
  private readonly base: string
  private readonly options: HttpOptions

  /**
   * @param base URL of the folder that holds the files
   * @throws TypeError (ERR_INVALID_ARG_TYPE) without a function `fetch`; ERR_INVALID_URL
   */
  constructor(base: string | URL, options: HttpOptions) {
    if (typeof options?.fetch !== 'function') throw wrongType('HttpRangeSource: fetch must be a function')
    const url = new URL(base)
    if (!url.pathname.endsWith('/')) url.pathname += '/'
    this.base = url.href
    this.options = options
  }

  /**
   * Validates the header of one file against the size the server states.
   * @throws ERR_SAFETENSORS_HTTP_REQUEST, _HTTP_STATUS, _HTTP_NO_RANGE, _HTTP_CONTENT_RANGE, _HTTP_BODY_LENGTH,
   *   _HTTP_CHANGED, and what parseHeader throws
   */
  async openFile(name: string): Promise<TensorTable> {
    const url = this.locate(name)
    const prefix = await this.range(url, PREFIX_BYTES)
    const { fileBytes } = prefix
    const dataOffset = PREFIX_BYTES + headerLength(prefix.bytes, fileBytes, url)
    const header = await this.range(url, dataOffset)
    const startsAlike = prefix.bytes.every((byte, i) => header.bytes[i] === byte)
    if (header.fileBytes !== fileBytes || header.etag !== prefix.etag || !startsAlike) {
      throw new SafetensorsError(
        'ERR_SAFETENSORS_HTTP_CHANGED',
        'the file changed between two requests: open it again',
        { file: url }
      )
    }
    return parseHeader(header.bytes, { file: url, fileBytes })
  }

  /**
   * Reads the index and the header of every shard it names, and checks that both name the same tensors.
   * @param index name of the index file
   * @throws what openFile throws, ERR_SAFETENSORS_INDEX_*, _TENSOR_MISSING, _TENSOR_MISPLACED, _TENSOR_IN_TWO_SHARDS
   */
  async openSharded(index = 'model.safetensors.index.json'): Promise<ShardedCheckpoint> {
    const url = this.locate(index)
    const response = await this.request(url, {})
    if (response.status !== 200)
      throw await refuse(response, 'ERR_SAFETENSORS_HTTP_STATUS', 'status 200', url)
    const parsed = parseIndex(await this.body(response, url, MAX_INDEX_BYTES), url)
    const source = {
      parallel: HTTP_PARALLEL,
      locate: (name: string) => this.locate(name),
      header: (name: string) => this.openFile(name)
    }
    return joinShards(source, [...parsed.shards.keys()], parsed, [])
  }

  private locate(name: string): string {
    if (typeof name !== 'string' || !isPlainFileName(name))
      throw wrongType(`HttpRangeSource: ${quote(String(name))} is no plain file name`)
    return new URL(encodeURIComponent(name), this.base).href
  }

  private async request(url: string, headers: Record<string, string>): Promise<Response> {
    const { fetch, signal } = this.options
    const init: RequestInit = {
      // a compressed answer would make the length of the range meaningless
      headers: { ...this.options.headers, 'accept-encoding': 'identity', ...headers },
      ...(signal === undefined ? {} : { signal })
    }
    let response: Response | null | undefined
    try {
      response = await fetch(url, init)
    } catch (cause) {
      throw this.requestFailed(url, cause)
    }
    // not by class: a fetch from a package has classes of its own
    if (typeof response?.status === 'number' && typeof response.headers?.get === 'function') return response
    throw this.requestFailed(url, wrongType(`fetch gave ${String(response)} and no Response`))
  }

  private requestFailed(url: string, cause: unknown): unknown {
    if (this.options.signal?.aborted === true) return cause
    return new SafetensorsError('ERR_SAFETENSORS_HTTP_REQUEST', `the request failed: ${String(cause)}`, {
      file: url,
      cause
    })
  }

  /** The first `length` bytes of a file, or all of a shorter one. */
  private async range(url: string, length: number): Promise<RangeAnswer> {
    const response = await this.request(url, { range: `bytes=0-${length - 1}` })
    if (response.status === 200) {
      throw await refuse(response, 'ERR_SAFETENSORS_HTTP_NO_RANGE', 'a partial answer (206) to a range', url)
    }
    if (response.status !== 206)
      throw await refuse(response, 'ERR_SAFETENSORS_HTTP_STATUS', 'status 206', url)
    const fileBytes = totalOfRange(response.headers.get('content-range'), length)
    if (fileBytes === null) {
      const expected = `content-range 'bytes 0-${length - 1}/SIZE'`
      throw await refuse(response, 'ERR_SAFETENSORS_HTTP_CONTENT_RANGE', expected, url)
    }
    const expectedBytes = Math.min(length, fileBytes)
    const bytes = await this.body(response, url, expectedBytes)
    if (bytes.byteLength < expectedBytes) {
      throw new SafetensorsError(
        'ERR_SAFETENSORS_HTTP_BODY_LENGTH',
        `expected ${expectedBytes} bytes, the server sent ${bytes.byteLength}`,
        { file: url, offset: bytes.byteLength }
      )
    }
    return { bytes, fileBytes, etag: response.headers.get('etag') }
  }

  /** The body, held in memory only as far as it has arrived, and never beyond `limit` bytes. */
  private async body(response: Response, url: string, limit: number): Promise<Uint8Array> {
    if (response.body === null) return new Uint8Array(0)
    const reader = response.body.getReader()
    const chunks: Uint8Array[] = []
    let bytes = 0
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        chunks.push(part.value)
        bytes += part.value.byteLength
        if (bytes > limit) break
      }
    } catch (cause) {
      throw this.requestFailed(url, cause)
    }
    if (bytes > limit) {
      await reader.cancel()
      throw new SafetensorsError(
        'ERR_SAFETENSORS_HTTP_BODY_LENGTH',
        `expected at most ${limit} bytes, the server sends more`,
        { file: url, offset: limit }
      )
    }
    return Buffer.concat(chunks, bytes)
  }
}

/** Size of the file out of a Content-Range that answers `bytes=0-(length - 1)`; null for any other. */
function totalOfRange(contentRange: string | null, length: number): number | null {
  const match = /^bytes 0-(\d+)\/(\d+)$/.exec(contentRange === null ? '' : contentRange)
  if (match === null) return null
  const last = Number(match[1])
  const total = Number(match[2])
  return Number.isSafeInteger(total) && last === Math.min(length, total) - 1 ? total : null
}

/** Drops the body, which may be a whole shard, and says what came instead of what was expected. */
async function refuse(
  response: Response,
  code: SafetensorsErrorCode,
  expected: string,
  url: string
): Promise<SafetensorsError> {
  const contentRange = response.headers.get('content-range')
  // a body that has broken off cannot be cancelled; the status is what there is to say
  await Promise.allSettled([response.body?.cancel()])
  const found = `status ${response.status}${contentRange === null ? '' : `, content-range '${contentRange}'`}`
  return new SafetensorsError(code, `expected ${expected}, found ${found}`, { file: url })
}
