import { readFileSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ExpertCacheError } from '../src/index.js'
import { RoutingTrace, readTrace, writeTrace } from '../src/traces.js'

const sharedBytes = readFileSync(new URL('../../../fixtures/traces/expert_trace.bin', import.meta.url))
const demoText = readFileSync(new URL('../../demo-model/expert_trace.jsonl', import.meta.url), 'utf8')

const recordsOf = (trace: RoutingTrace): (readonly [number, number[]])[] =>
  Array.from({ length: trace.length }, (_, i) => [trace.layerAt(i), Array.from(trace.expertsAt(i))] as const)

const pairs = (...numbers: number[]): Uint8Array => new Uint8Array(Int32Array.from(numbers).buffer)

const refused = (action: () => unknown): ExpertCacheError => {
  try {
    action()
  } catch (error) {
    if (error instanceof ExpertCacheError) return error
    throw error
  }
  throw new Error('expected an error')
}

describe('routing trace', () => {
  test('holds the requests the shared recording states', () => {
    const raw = RoutingTrace.fromPairs(sharedBytes, 16)
    expect(raw.length * raw.topK).toBe(100_096)
    const decoding = raw.lastSweepInDecodeOrder()
    expect(decoding.length * decoding.topK).toBe(17_664)
    const distinct = new Set(recordsOf(decoding).flatMap(([layer, ids]) => ids.map((id) => `${layer}:${id}`)))
    expect(distinct.size).toBe(10_010)
    expect(recordsOf(decoding).map(([layer]) => layer)).toEqual(
      Array.from({ length: 12 * 92 }, (_, i) => 1 + (i % 92))
    )
  })

  test('puts a layer-major sweep in decode order', () => {
    const trace = new RoutingTrace(1)
    for (const [layer, id] of [
      [1, 9],
      [2, 9],
      [1, 0],
      [1, 1],
      [1, 2],
      [2, 3],
      [2, 4],
      [2, 5]
    ] as const) {
      trace.record(layer, [id])
    }
    expect(recordsOf(trace.lastSweepInDecodeOrder())).toEqual([
      [1, [0]],
      [2, [3]],
      [1, [1]],
      [2, [4]],
      [1, [2]],
      [2, [5]]
    ])
    expect(new RoutingTrace(3).lastSweepInDecodeOrder().length).toBe(0)
  })

  test('reads back the shared recording it wrote, at a quarter of its size', () => {
    const trace = RoutingTrace.fromPairs(sharedBytes, 16).lastSweepInDecodeOrder()
    const bytes = writeTrace({ trace, expertCount: 896, expertBytes: 17_547_264 })
    expect(bytes.byteLength).toBe(40 + 2 * 92 + 12 * (4 + 92 * 16 * 2) + 4)
    const back = readTrace(bytes)
    expect(back).toMatchObject({ expertCount: 896, expertBytes: 17_547_264 })
    expect(recordsOf(back.trace)).toEqual(recordsOf(trace))
    expect(writeTrace(back)).toEqual(bytes)
  })

  test('reads the JSON lines of the demo model', () => {
    const trace = RoutingTrace.fromJsonLines(demoText)
    const tokens = demoText.trimEnd().split('\n').length - 1
    expect([trace.topK, trace.length]).toEqual([4, tokens * 12])
    expect(recordsOf(trace).slice(0, 2)).toEqual([
      [1, [7, 11, 1, 9]],
      [2, [14, 15, 9, 11]]
    ])
  })

  test('returns what was recorded after a round trip', () => {
    const ids = fc.uniqueArray(fc.nat(65535), { minLength: 3, maxLength: 3 })
    const layers = fc.uniqueArray(fc.nat(8191), { minLength: 1, maxLength: 4 })
    const passes = fc.array(fc.array(ids, { minLength: 1, maxLength: 3 }), { maxLength: 5 })
    fc.assert(
      fc.property(layers, passes, (order, tokens) => {
        const trace = new RoutingTrace(3)
        for (const chosen of tokens)
          for (const layer of order) trace.record(layer, chosen.flat(), chosen.length)
        const back = readTrace(writeTrace({ trace, expertCount: 65536, expertBytes: 0 })).trace
        expect(recordsOf(back)).toEqual(recordsOf(trace))
        expect(Array.from({ length: back.length }, (_, i) => back.tokensAt(i))).toEqual(
          tokens.flatMap((chosen) => order.map(() => chosen.length))
        )
      }),
      { seed: 20 }
    )
  })

  test('reads bytes that start at an odd address', () => {
    const odd = new Uint8Array(17)
    odd.set(pairs(5, 6, 5, 7), 1)
    expect(recordsOf(RoutingTrace.fromPairs(odd.subarray(1), 2))).toEqual([[5, [6, 7]]])
  })
})

describe('routing trace refuses', () => {
  test.each([
    ['a cut record', () => RoutingTrace.fromPairs(new Uint8Array(15), 2), { bytes: 15, recordBytes: 16 }],
    [
      'two layers in a record',
      () => RoutingTrace.fromPairs(pairs(1, 5, 2, 6), 2),
      { offsetBytes: 8, found: 2 }
    ],
    [
      'a repeated expert',
      () => RoutingTrace.fromPairs(pairs(1, 4, 1, 5, 1, 5, 1, 5), 2),
      { offsetBytes: 16 }
    ],
    ['a negative expert', () => RoutingTrace.fromPairs(pairs(1, -4), 1), { offsetBytes: 0 }],
    ['a negative layer', () => RoutingTrace.fromPairs(pairs(-1, 4), 1), { offsetBytes: 0 }],
    ['too few recorded ids', () => new RoutingTrace(2).record(0, [1]), { record: 0 }],
    ['an empty text', () => RoutingTrace.fromJsonLines(''), { line: 1 }],
    ['a header without top_k', () => RoutingTrace.fromJsonLines('{"moe_layers":[1]}'), { line: 1 }],
    ['a top_k of 0', () => RoutingTrace.fromJsonLines('{"moe_layers":[1],"top_k":0}'), { line: 1 }],
    [
      'a line that is not JSON',
      () => RoutingTrace.fromJsonLines('{"moe_layers":[1],"top_k":1}\n{'),
      { line: 2 }
    ],
    [
      'a line that is no object',
      () => RoutingTrace.fromJsonLines('{"moe_layers":[1],"top_k":1}\nnull'),
      { line: 2 }
    ],
    [
      'a line with a layer too few',
      () => RoutingTrace.fromJsonLines('{"moe_layers":[1,2],"top_k":1}\n{"experts":[[1]]}'),
      { line: 2 }
    ],
    [
      'a line with an expert too many',
      () => RoutingTrace.fromJsonLines('{"moe_layers":[1],"top_k":1}\n{"experts":[[1,2]]}\n'),
      { line: 2 }
    ],
    [
      'a layer that is no number',
      () => RoutingTrace.fromJsonLines('{"moe_layers":["1"],"top_k":1}\n{"experts":[[1]]}'),
      { line: 2 }
    ]
  ])('%s, and says where', (_name, action, fields) => {
    const error = refused(action)
    expect(error.code).toBe('ERR_MOE_CACHE_TRACE')
    expect(error.fields).toMatchObject(fields)
  })

  test('a last sweep with positions missing in a layer', () => {
    const trace = new RoutingTrace(1)
    for (const layer of [1, 1, 2]) trace.record(layer, [0])
    expect(refused(() => trace.lastSweepInDecodeOrder()).code).toBe('ERR_MOE_CACHE_TRACE')
    const uneven = new RoutingTrace(1)
    for (const layer of [1, 2, 2, 3]) uneven.record(layer, [0])
    expect(refused(() => uneven.lastSweepInDecodeOrder()).fields).toMatchObject({ record: 1, layer: 2 })
  })
})

describe('trace file refuses', () => {
  const whole = (): Uint8Array => {
    const trace = new RoutingTrace(2)
    for (const layer of [1, 2]) trace.record(layer, [3, 5])
    for (const layer of [1, 2]) trace.record(layer, [3, 5, 4, 3], 2)
    return writeTrace({ trace, expertCount: 6, expertBytes: 100 })
  }

  /** The file with some bytes changed, and the checksum made to fit when asked. */
  const changed = (at: number, bytes: readonly number[], isSigned = true): Uint8Array => {
    const file = whole()
    file.set(bytes, at)
    const end = file.length - 4
    if (isSigned) new DataView(file.buffer).setUint32(end, crc32(file.subarray(0, end)), true)
    return file
  }

  test('each length but its own, with the offset', () => {
    const file = whole()
    for (let bytes = 0; bytes < file.length; bytes++) {
      expect(refused(() => readTrace(file.subarray(0, bytes))).fields.offsetBytes).toBeLessThanOrEqual(bytes)
    }
    expect(refused(() => readTrace(Buffer.concat([file, Buffer.of(0)]))).code).toBe('ERR_MOE_CACHE_TRACE')
  })

  test('each changed bit', () => {
    for (let bit = 0; bit < whole().length * 8; bit++) {
      const file = whole()
      file[bit >> 3]! ^= 1 << (bit & 7)
      const { code, fields } = refused(() => readTrace(file))
      expect(code).toBe('ERR_MOE_CACHE_TRACE')
      expect(fields.offsetBytes).toBeLessThanOrEqual(file.length)
    }
  })

  test.each([
    ['another file', changed(0, [0x50, 0x4b]), 0],
    ['another version', changed(8, [2]), 8],
    ['a topK of 0', changed(12, [0]), 12],
    ['fewer experts than topK', changed(16, [1]), 16],
    ['more layers than there can be', changed(20, [0, 0, 1, 0]), 20],
    ['more passes than tokens', changed(32, [9]), 36],
    ['a pass of no tokens', changed(44, [0]), 44],
    ['a pass that does not fit', changed(44, [9]), 44],
    ['an expert that is not there', changed(50, [6]), 50],
    ['a repeated expert', changed(50, [3]), 48],
    ['a layer that cannot be', changed(40, [0, 0x80]), 48],
    ['damage that looks like a trace', changed(48, [4], false), 76]
  ])('%s, with the byte', (_name, file, offsetBytes) => {
    const error = refused(() => readTrace(file))
    expect([error.code, error.fields.offsetBytes]).toEqual(['ERR_MOE_CACHE_TRACE', offsetBytes])
  })

  test('to write what is no whole passes', () => {
    const write =
      (trace: RoutingTrace, expertCount = 6) =>
      () =>
        writeTrace({ trace, expertCount, expertBytes: 0 })
    const traceOf = (...records: [number, number[]][]) => {
      const trace = new RoutingTrace(1)
      for (const [layer, ids] of records) trace.record(layer, ids, ids.length)
      return trace
    }
    expect(refused(write(traceOf([1, [0]], [2, [0]], [1, [0]]))).fields).toEqual({ record: 3 })
    expect(refused(write(traceOf([1, [0]], [2, [0]], [1, [0]], [3, [0]]))).fields).toEqual({ record: 3 })
    expect(refused(write(traceOf([1, [0]], [2, [0, 1]]))).fields).toEqual({ record: 1 })
    expect(refused(write(traceOf([1, [7]]))).fields).toEqual({ record: 0, expert: 7 })
    expect(readTrace(write(traceOf())()).trace.length).toBe(0)
  })
})
