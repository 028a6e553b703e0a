import { modelDir } from '@k3/demo-model'
import { describe, expect, it } from 'vitest'
import type { ModelOptions } from '../src/model-options.js'
import { openModel } from '../src/open-model.js'
import { type Span, unwatched, watchLayer } from '../src/spans.js'
import type { ReadSpan } from '../src/watch-reads.js'

const logitsOf = async (options: ModelOptions): Promise<Float32Array> => {
  await using model = await openModel(modelDir, { threads: 1, chunkTokens: 2, ...options })
  return await model.forward([5, 6, 7])
}

describe('a watched model', () => {
  it('reports every block of every layer, in order, and computes the same bits', async () => {
    const spans: Span[] = []
    const logits = await logitsOf({ onSpan: (span) => spans.push(span) })
    expect(logits).toEqual(await logitsOf({}))
    spans.forEach(({ startMs, endMs }, i) => {
      expect(endMs).toBeGreaterThanOrEqual(startMs)
      if (i > 0) expect(startMs).toBeGreaterThanOrEqual(spans[i - 1]!.endMs)
    })
    const blocks = (layer: number | null) =>
      new Set(spans.filter((span) => span.layer === layer).map(({ name }) => name))
    expect(blocks(null)).toEqual(
      new Set(['embed.rows', 'trunk.wait', 'head.mix', 'head.norm', 'head.logits'])
    )
    const residual = ['residual.mix', 'residual.norm', 'residual.add']
    const kda = ['attention.project', 'attention.decay-up', 'attention.kda', 'attention.output']
    expect(blocks(0)).toEqual(new Set([...residual, ...kda, 'dense.gate-up', 'dense.situ', 'dense.down']))
    const moe = [
      'moe.project',
      'router.route',
      'shared.situ',
      'shared.down',
      'latent.norm',
      'latent.up',
      'latent.add'
    ]
    const experts = ['experts.submit', 'experts.wait', 'experts.mlp', 'experts.combine']
    expect(blocks(1)).toEqual(new Set([...residual, ...kda, ...moe, ...experts]))
    expect([...blocks(3)].filter((name) => name.startsWith('attention.'))).toEqual([
      'attention.project',
      'attention.query-norm',
      'attention.query-up',
      'attention.mla',
      'attention.output'
    ])
  })

  it('reports every read, and computes the same bits', async () => {
    const reads: ReadSpan[] = []
    const options: ModelOptions = { cacheSlots: 8, trunk: 'stream', lookahead: 4, chunkTokens: 1 }
    const spans: Span[] = []
    const onRead = (read: ReadSpan) => reads.push(read)
    const logits = await logitsOf({ ...options, onRead, onSpan: (span) => spans.push(span) })
    expect(logits).toEqual(await logitsOf(options))
    for (const kind of ['wanted', 'trunk'] as const)
      expect(reads.filter((read) => read.kind === kind).length).toBeGreaterThan(10)
    for (const { file, bytes, startMs, endMs } of reads) {
      expect(file).toMatch(/safetensors$/)
      expect(bytes).toBeGreaterThan(0)
      expect(endMs).toBeGreaterThanOrEqual(startMs)
    }
    // the same clock as the spans
    expect(Math.min(...reads.map(({ endMs }) => endMs))).toBeLessThan(spans.at(-1)!.endMs)
    expect(Math.max(...reads.map(({ endMs }) => endMs))).toBeGreaterThan(spans[0]!.startMs)
  })

  it.each(['onSpan', 'onRead'])('refuses an observer %s that is no function', async (field) => {
    const error = await openModel(modelDir, { [field]: 1 }).then(undefined, (cause: unknown) => cause)
    expect(error).toMatchObject({ code: 'ERR_K3_OPTION', field })
  })
})

describe('a watched part', () => {
  it('reports a call that throws as well, and passes everything else through', () => {
    const part = Object.freeze({
      count: 3,
      double: (n: number) => 2 * n,
      fail: () => {
        throw new RangeError('no')
      }
    })
    const spans: Span[] = []
    const watched = watchLayer((span) => spans.push(span), 7)(part, { fail: 'block.fail' })
    expect(watched.count).toBe(3)
    expect(watched.double(4)).toBe(8)
    expect(() => watched.fail()).toThrow(RangeError)
    expect(spans).toMatchObject([{ name: 'block.fail', layer: 7 }])
  })

  it('is the part itself when nobody watches', () => {
    const part = { run: () => 1 }
    expect(unwatched(part, { run: 'block.run' })).toBe(part)
  })
})
