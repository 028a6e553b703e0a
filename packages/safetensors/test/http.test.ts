import { existsSync, readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { HttpRangeSource } from '../src/http.ts'
import { codeOf, errorOf, fileOf, INDEX, indexOf, shardOf } from './cases.ts'
import { casesOf, expectedCodes, pathOf } from './fixtures.ts'

const BASE = 'http://model.invalid/repo/'

interface Reply {
  status?: number
  headers?: Record<string, string>
  body?: Uint8Array | null
}

type Spoil = (honest: Required<Reply>, url: string, request: number) => Reply

/** A fetch over files in memory that answers ranges, and lets a test spoil its answers. */
function fakeFetch(files: Record<string, Uint8Array | string>, spoil: Spoil = (honest) => honest) {
  const requests: { url: string; range: string | null }[] = []
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const range = new Headers(init.headers).get('range')
    requests.push({ url, range })
    const content = files[decodeURIComponent(url.slice(BASE.length))]
    const honest = content === undefined ? notFound : answer(Buffer.from(content), range)
    const { status, headers, body } = { ...honest, ...spoil(honest, url, requests.length) }
    return new Response(body === null ? null : new Uint8Array(body), { status, headers })
  }
  return { fetch, requests }
}

const notFound: Required<Reply> = { status: 404, headers: {}, body: null }

function answer(content: Buffer, range: string | null): Required<Reply> {
  if (range === null) return { status: 200, headers: {}, body: content }
  const last = Math.min(Number(/^bytes=0-(\d+)$/.exec(range)![1]), content.length - 1)
  if (last < 0) return { status: 416, headers: { 'content-range': 'bytes */0' }, body: null }
  const headers = { 'content-range': `bytes 0-${last}/${content.length}`, etag: '"v1"' }
  return { status: 206, headers, body: content.subarray(0, last + 1) }
}

const model = { 'model.safetensors': shardOf('a', 'b') }
const open = (spoil?: Spoil) =>
  new HttpRangeSource(BASE, fakeFetch(model, spoil)).openFile('model.safetensors')
const codeWith = (spoil: Spoil) => codeOf(() => open(spoil))

describe('openFile', () => {
  test('asks for 8 bytes, then for the header, never for data', async () => {
    const { fetch, requests } = fakeFetch(model)
    const table = await new HttpRangeSource(BASE.slice(0, -1), { fetch }).openFile('model.safetensors')
    expect(table.names()).toEqual(['a', 'b'])
    const url = `${BASE}model.safetensors`
    expect(requests).toEqual([
      { url, range: 'bytes=0-7' },
      { url, range: `bytes=0-${table.dataOffset - 1}` }
    ])
    expect(table.fileBytes).toBe(model['model.safetensors'].length)
  })

  test.each(
    [...casesOf('st', 'accept'), ...casesOf('st', 'reject')].filter(({ name }) => name !== 'len-file-empty')
  )('judges $name as the local reader does', async (one) => {
    const source = new HttpRangeSource(BASE, fakeFetch({ x: readFileSync(pathOf(one)) }))
    if (one.verdict === 'accept') expect((await source.openFile('x')).size).toBeGreaterThanOrEqual(0)
    else expect(await codeOf(() => source.openFile('x'))).toBe(expectedCodes.st.get(one.name))
  })

  test('an empty file has no range', async () => {
    const source = new HttpRangeSource(BASE, fakeFetch({ x: '' }))
    expect(await codeOf(() => source.openFile('x'))).toBe('ERR_SAFETENSORS_HTTP_STATUS')
  })

  test('a server that ignores ranges is refused and its body dropped', async () => {
    let dropped = false
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
      cancel: () => {
        dropped = true
      }
    })
    const source = new HttpRangeSource(BASE, { fetch: async () => new Response(endless, { status: 200 }) })
    const error = await errorOf(() => source.openFile('x'))
    expect([error.code, error.file]).toEqual(['ERR_SAFETENSORS_HTTP_NO_RANGE', `${BASE}x`])
    expect(dropped).toBe(true)
  })

  test('a body that does not end is left at the length asked for', async () => {
    const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(5)) })
    const headers = { 'content-range': 'bytes 0-7/100' }
    const source = new HttpRangeSource(BASE, {
      fetch: async () => new Response(endless, { status: 206, headers })
    })
    expect(await codeOf(() => source.openFile('x'))).toBe('ERR_SAFETENSORS_HTTP_BODY_LENGTH')
  })

  test.each([1, 2])('one byte less in answer %i is refused, and not asked for again', async (bad) => {
    const { fetch, requests } = fakeFetch(model, ({ body }, _, request) =>
      request === bad ? { body: body!.subarray(0, -1) } : {}
    )
    const source = new HttpRangeSource(BASE, { fetch })
    expect(await codeOf(() => source.openFile('model.safetensors'))).toBe('ERR_SAFETENSORS_HTTP_BODY_LENGTH')
    expect(requests.length).toBe(bad)
  })

  test('a body of one byte more or none at all is refused', async () => {
    expect(await codeWith(({ body }) => ({ body: Buffer.concat([body!, Buffer.of(0)]) }))).toBe(
      'ERR_SAFETENSORS_HTTP_BODY_LENGTH'
    )
    expect(await codeWith(() => ({ body: null }))).toBe('ERR_SAFETENSORS_HTTP_BODY_LENGTH')
  })

  test.each([
    '',
    'bytes 0-6/100',
    'bytes 1-8/100',
    'bytes 0-7/*',
    'bytes 0-7/99999999999999999999',
    'bytes 0-7/4',
    'bytes=0-7/100',
    'items 0-7/100'
  ])('content-range %j is refused', async (range) => {
    const headers = range === '' ? {} : { 'content-range': range }
    expect(await codeWith(() => ({ headers: headers as Record<string, string> }))).toBe(
      'ERR_SAFETENSORS_HTTP_CONTENT_RANGE'
    )
  })

  test.each([401, 403, 404, 416, 429, 500, 503])('status %i is named', async (status) => {
    const error = await errorOf(() => open(() => ({ status, body: null })))
    expect(error.code).toBe('ERR_SAFETENSORS_HTTP_STATUS')
    expect(error.message).toContain(`status ${status}`)
  })

  test('a file replaced between the two requests is noticed', async () => {
    const changes: Spoil[] = [
      (honest) => ({ headers: { ...honest.headers, etag: '"v2"' } }),
      (honest) => ({
        headers: { 'content-range': honest.headers['content-range']!.replace(/\d+$/, '999'), etag: '"v1"' }
      }),
      ({ body }) => ({ body: Uint8Array.from(body!).fill(1, 0, 1) })
    ]
    for (const change of changes) {
      const code = await codeWith((honest, url, request) =>
        request === 2 ? change(honest, url, request) : {}
      )
      expect(code).toBe('ERR_SAFETENSORS_HTTP_CHANGED')
    }
  })

  test('a false length is refused before the header is asked for', async () => {
    const { fetch, requests } = fakeFetch({ x: fileOf('{}', 0, 100_000_001n) })
    expect(await codeOf(() => new HttpRangeSource(BASE, { fetch }).openFile('x'))).toBe(
      'ERR_SAFETENSORS_HEADER_TOO_LARGE'
    )
    expect(requests.length).toBe(1)
  })

  test('a failed request keeps its cause, also in the middle of a body', async () => {
    const cause = new TypeError('fetch failed')
    const down = new HttpRangeSource(BASE, { fetch: () => Promise.reject(cause) })
    const error = await errorOf(() => down.openFile('x'))
    expect([error.code, error.cause]).toEqual(['ERR_SAFETENSORS_HTTP_REQUEST', cause])
    const broken = new ReadableStream({ pull: (controller) => controller.error(cause) })
    const headers = { 'content-range': 'bytes 0-7/100' }
    const cut = new HttpRangeSource(BASE, {
      fetch: async () => new Response(broken, { status: 206, headers })
    })
    expect(await codeOf(() => cut.openFile('x'))).toBe('ERR_SAFETENSORS_HTTP_REQUEST')
  })

  test('names are file names, and are escaped', async () => {
    const { fetch, requests } = fakeFetch({ 'a b?#%.safetensors': shardOf('a') })
    const source = new HttpRangeSource(BASE, { fetch })
    expect((await source.openFile('a b?#%.safetensors')).size).toBe(1)
    expect(requests[0]!.url).toBe(`${BASE}a%20b%3F%23%25.safetensors`)
    for (const name of ['../x', undefined as unknown as string]) {
      await expect(source.openFile(name)).rejects.toMatchObject({
        name: 'TypeError',
        code: 'ERR_INVALID_ARG_TYPE'
      })
    }
  })

  test.each([[null], [undefined], [7], [{}], [{ status: 206 }]])(
    'a fetch that gives %j is a failed request',
    async (answer) => {
      const source = new HttpRangeSource(BASE, { fetch: async () => answer as unknown as Response })
      const error = await errorOf(() => source.openFile('x'))
      expect(error).toMatchObject({
        code: 'ERR_SAFETENSORS_HTTP_REQUEST',
        cause: { code: 'ERR_INVALID_ARG_TYPE' }
      })
    }
  )

  test.each([[undefined], [null], [{}], [{ fetch: 'GET' }]])('refuses %j as options', (options) => {
    expect(() => new HttpRangeSource(BASE, options as never)).toThrow(
      expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' })
    )
  })

  test('a response of other classes than the built-in ones is as good', async () => {
    const { fetch } = fakeFetch(model)
    const foreign = async (url: string, init: RequestInit) => {
      const { status, headers, body } = await fetch(url, init)
      return { status, body, headers: { get: (name: string) => headers.get(name) } } as Response
    }
    const table = await new HttpRangeSource(BASE, { fetch: foreign }).openFile('model.safetensors')
    expect(table.names()).toEqual(['a', 'b'])
  })

  test('headers of the caller are sent and cannot replace the range', async () => {
    const seen: Headers[] = []
    const { fetch } = fakeFetch(model)
    const source = new HttpRangeSource(BASE, {
      headers: { authorization: 'Bearer x', range: 'bytes=5-' },
      fetch: (url, init) => {
        seen.push(new Headers(init.headers))
        return fetch(url, init)
      }
    })
    await source.openFile('model.safetensors')
    expect(seen.map((headers) => [headers.get('authorization'), headers.get('accept-encoding')])).toEqual(
      Array(2).fill(['Bearer x', 'identity'])
    )
    expect(seen[0]!.get('range')).toBe('bytes=0-7')
  })
})

describe('openSharded', () => {
  test.each([...casesOf('index', 'accept'), ...casesOf('index', 'reject')])(
    'judges $name as the local reader does',
    async (one) => {
      const fetch = async (url: string, init: RequestInit) => {
        const path = join(pathOf(one), url.slice(BASE.length))
        return fakeFetch(existsSync(path) ? { [url.slice(BASE.length)]: readFileSync(path) } : {}).fetch(
          url,
          init
        )
      }
      const source = new HttpRangeSource(BASE, { fetch })
      if (one.verdict === 'accept') {
        const names = one.tensors === undefined ? ['a', 'b'] : one.tensors
        expect([...(await source.openSharded()).names()]).toEqual(names)
        return
      }
      const local = expectedCodes.index.get(one.name)
      const absent = local === 'ERR_SAFETENSORS_SHARD_MISSING' ? 'ERR_SAFETENSORS_HTTP_STATUS' : local
      expect(await codeOf(() => source.openSharded())).toBe(absent)
    }
  )

  test('an absent index is named', async () => {
    const error = await errorOf(() => new HttpRangeSource(BASE, fakeFetch({})).openSharded())
    expect([error.code, error.file]).toEqual(['ERR_SAFETENSORS_HTTP_STATUS', BASE + INDEX])
  })

  test('an index that does not end is left at its limit', async () => {
    const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(2 ** 26)) })
    const source = new HttpRangeSource(BASE, { fetch: async () => new Response(endless) })
    expect(await codeOf(() => source.openSharded())).toBe('ERR_SAFETENSORS_HTTP_BODY_LENGTH')
  })

  test('at most four headers are under way at a time', async () => {
    const names = Array.from({ length: 11 }, (_, i) => `s${i}`)
    const files = Object.fromEntries(names.map((name) => [name, shardOf(`t.${name}`)]))
    const index = indexOf(Object.fromEntries(names.map((name) => [`t.${name}`, name])))
    const { fetch } = fakeFetch({ ...files, [INDEX]: index })
    let now = 0
    let most = 0
    const counting = async (url: string, init: RequestInit) => {
      most = Math.max(most, ++now)
      await new Promise((resolve) => setTimeout(resolve, 1))
      now--
      return fetch(url, init)
    }
    const checkpoint = await new HttpRangeSource(BASE, { fetch: counting }).openSharded()
    expect([checkpoint.size, most]).toEqual([11, 4])
    expect(checkpoint.shards[checkpoint.get('t.s10').shard]!.path).toBe(`${BASE}s10`)
  })
})

describe('over a real server', () => {
  const files: Record<string, Uint8Array | string> = {
    's1.safetensors': shardOf('a'),
    's2.safetensors': shardOf('b', 'c'),
    [INDEX]: indexOf({ a: 's1.safetensors', b: 's2.safetensors', c: 's2.safetensors' }, 12)
  }

  async function serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    afterAll(() => {
      server.closeAllConnections()
      server.close()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  }

  const honest: RequestListener = (request, response) => {
    const content = files[request.url!.slice(1)]
    const range = request.headers.range
    const { status, headers, body } =
      content === undefined ? notFound : answer(Buffer.from(content), range === undefined ? null : range)
    response.writeHead(status, headers).end(body === null ? undefined : body)
  }

  test('index and headers arrive', async () => {
    const source = new HttpRangeSource(await serve(honest), { fetch: globalThis.fetch })
    const checkpoint = await source.openSharded()
    expect([...checkpoint.names()]).toEqual(['a', 'b', 'c'])
    expect([checkpoint.tensorBytes, checkpoint.notices]).toEqual([12, []])
  })

  test('a connection cut inside the body is a failed request', async () => {
    const base = await serve((_, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-7/100', 'content-length': '8' })
      response.write(Buffer.alloc(7), () => response.destroy())
    })
    const source = new HttpRangeSource(base, { fetch: globalThis.fetch })
    expect(await codeOf(() => source.openFile('x'))).toBe('ERR_SAFETENSORS_HTTP_REQUEST')
  })

  test('a refused answer whose body breaks off is named by its status', async () => {
    const fetch = async () => {
      const body = new ReadableStream({ pull: (controller) => controller.error(new Error('cut')) })
      return new Response(body, { status: 503 })
    }
    const source = new HttpRangeSource(BASE, { fetch })
    expect(await codeOf(() => source.openFile('x'))).toBe('ERR_SAFETENSORS_HTTP_STATUS')
    expect(await codeOf(() => source.openSharded())).toBe('ERR_SAFETENSORS_HTTP_STATUS')
  })

  test('the signal ends a silent server with its own reason', async () => {
    const controller = new AbortController()
    const base = await serve(() => controller.abort(new Error('enough')))
    const source = new HttpRangeSource(base, { fetch: globalThis.fetch, signal: controller.signal })
    await expect(source.openFile('x')).rejects.toThrow('enough')
  })
})
