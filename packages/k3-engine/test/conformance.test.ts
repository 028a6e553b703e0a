import { readFileSync } from 'node:fs'
import { modelDir } from '@k3/demo-model'
import { createPool } from '@k3/task-pool'
import { loadTokenizer } from '@k3/tokenizer'
import { openReader } from '@k3/uring'
import { createVectorOps } from '@k3/vector-ops'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { openCheckpoint } from '../src/checkpoint/open-checkpoint.js'
import type { Checkpoint } from '../src/checkpoint/types.js'
import { expertSourceCases, layerCases, tokenizerCases, weightSourceCases } from '../src/conformance.js'
import { DenseMlp } from '../src/dense-mlp.js'
import { ExpertMlps } from '../src/expert-mlps.js'
import { DiskExperts } from '../src/experts.js'
import { KdaLayer } from '../src/kda-layer.js'
import { LatentMoe } from '../src/latent-moe.js'
import { MappedWeights } from '../src/mapped-weights.js'
import { MlaLayer } from '../src/mla-layer.js'
import { openTrunk } from '../src/open-trunk.js'
import { Scratch } from '../src/scratch.js'
import { unwatched } from '../src/spans.js'
import { layerTensorName } from '../src/tensor-names.js'
import { choosePlacement } from '../src/trunk-placement.js'

const pool = createPool({ threads: 2 })
const native = { pool, isa: 'auto' as const }
const closers: (() => void | Promise<void>)[] = []
let checkpoint: Checkpoint
beforeAll(async () => {
  checkpoint = await openCheckpoint(modelDir)
})
afterAll(async () => {
  for (const close of closers) await close()
  pool.close()
})

const experts = (slots: number, backend: 'io_uring' | 'pread' | 'auto') => {
  const reader = openReader(checkpoint.files, { backend })
  const source = new DiskExperts(checkpoint, reader, { slots, policy: 'lru', inspect: () => undefined })
  closers.push(() => source.close())
  closers.push(() => reader.close())
  return source
}

const layer = (kind: 'dense' | 'kda' | 'mla' | 'moe') => {
  const weights = new MappedWeights(checkpoint, native)
  closers.push(() => weights.close())
  const { config } = checkpoint
  const [ops, scratch] = [createVectorOps(native), new Scratch(8)]
  const parts = { config, weights, ops, scratch, native, watch: unwatched }
  const hiddenSize = config.hiddenSize
  if (kind === 'dense') return { layer: new DenseMlp(0, parts), hiddenSize }
  if (kind === 'kda') return { layer: new KdaLayer(1, parts), hiddenSize }
  if (kind === 'mla') return { layer: new MlaLayer(3, parts), hiddenSize }
  const source = experts(4, 'auto')
  const mlps = new ExpertMlps(checkpoint, native)
  mlps.bind(source.region)
  return { layer: new LatentMoe(5, parts, source, mlps.of(5)), hiddenSize }
}

describe.each(['pread', 'auto'] as const)('DiskExperts over %s', (backend) => {
  const open = async () => {
    const source = experts(6, backend)
    const expected = (index: number, expert: number) => {
      const area = checkpoint.experts(index)
      const file = readFileSync(checkpoint.files[area.file]!)
      return new Uint8Array(file.subarray(area.base(expert), area.base(expert) + area.bytes))
    }
    const read = (base: number, bytes: number) => source.region.view(base, bytes).slice()
    return { source, layer: 5, expertCount: 16, read, expected }
  }
  for (const { name, run } of expertSourceCases(open)) it(name, run)
})

describe.each(['dense', 'kda', 'mla', 'moe'] as const)('the built-in %s layer', (kind) => {
  for (const { name, run } of layerCases(() => layer(kind))) it(name, run)
})

describe.each(['mmap', 'resident', 'stream'] as const)('the built-in weights, trunk %s', (mode) => {
  const names = [1, 2].map((i) => layerTensorName(i, 'self_attn.q_proj.weight')) as [string, string]
  const open = async () => {
    const { config, plan } = checkpoint
    const sizes = { layerCount: plan.length, vocabSize: config.vocabSize, mostHeadRows: 100 }
    const reader = openReader(checkpoint.files)
    const parts = { checkpoint, plan, reader, native, chunkTokens: 1 }
    const source = openTrunk(choosePlacement({ trunk: mode }, sizes), parts)
    closers.push(() => source.close())
    closers.push(() => reader.close())
    const shapes = names.map((name) => checkpoint.extent(name).shape) as never
    return { source, names, shapes, matrix: (name: string) => source.vector(name), tolerance: 1e-6 }
  }
  for (const { name, run } of weightSourceCases(open)) it(name, run)
})

describe('the Kimi tokenizer', () => {
  for (const { name, run } of tokenizerCases(() => loadTokenizer(modelDir))) it(name, run)
})
