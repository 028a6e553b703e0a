import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ExpertCacheError, RoutingTrace } from '../src/index.js'

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
    const raw = RoutingTrace.fromBytes(sharedBytes, 16)
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

  test('writes the bytes it read', () => {
    const trace = RoutingTrace.fromBytes(sharedBytes, 16)
    expect(Buffer.from(trace.toBytes()).equals(sharedBytes)).toBe(true)
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
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(8191), ids)), (records) => {
        const trace = new RoutingTrace(3)
        for (const [layer, experts] of records) trace.record(layer, experts)
        expect(recordsOf(RoutingTrace.fromBytes(trace.toBytes(), 3))).toEqual(records)
      }),
      { seed: 20 }
    )
  })

  test('reads bytes that start at an odd address', () => {
    const odd = new Uint8Array(17)
    odd.set(pairs(5, 6, 5, 7), 1)
    expect(recordsOf(RoutingTrace.fromBytes(odd.subarray(1), 2))).toEqual([[5, [6, 7]]])
  })
})

describe('routing trace refuses', () => {
  test.each([
    ['a cut record', () => RoutingTrace.fromBytes(new Uint8Array(15), 2), { bytes: 15, recordBytes: 16 }],
    [
      'two layers in a record',
      () => RoutingTrace.fromBytes(pairs(1, 5, 2, 6), 2),
      { offsetBytes: 8, found: 2 }
    ],
    [
      'a repeated expert',
      () => RoutingTrace.fromBytes(pairs(1, 4, 1, 5, 1, 5, 1, 5), 2),
      { offsetBytes: 16 }
    ],
    ['a negative expert', () => RoutingTrace.fromBytes(pairs(1, -4), 1), { offsetBytes: 0 }],
    ['a negative layer', () => RoutingTrace.fromBytes(pairs(-1, 4), 1), { offsetBytes: 0 }],
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
