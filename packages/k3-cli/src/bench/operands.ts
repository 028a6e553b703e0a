import { availableMemory } from 'node:process'
import { allocRegion, type Region } from '@k3/uring'
import { BenchError } from './errors.js'
import type { BenchSizes } from './sizes.js'

const FILL_BYTES = 64 * 2 ** 20

/** Bytes of one MXFP4 matrix: its codes, then a scale for every 32 of them. */
export const matrixBytes = ({ geometry }: Pick<BenchSizes, 'geometry'>): number =>
  (matrixNumbers(geometry) * 17) / 32

const matrixNumbers = ({
  routed_expert_hidden_size,
  moe_intermediate_size
}: BenchSizes['geometry']): number => routed_expert_hidden_size * moe_intermediate_size

const trunkBytes = ({ geometry, cacheBytes }: BenchSizes): number => {
  const head = 2 * geometry.vocab_size * geometry.hidden_size
  return 256 * Math.ceil(Math.max(head, 4 * cacheBytes) / 256)
}

/** MXFP4 matrices that take turns: the experts of a token, and more than any cache holds. */
export const matrixCount = (sizes: BenchSizes): number =>
  3 * Math.max(sizes.geometry.num_experts_per_token, Math.ceil(sizes.cacheBytes / matrixBytes(sizes)))

const rowNumbers = ({ geometry, prefill, expertColumns, trunkColumns }: BenchSizes) => {
  const { hidden_size, kda_num_heads, kda_head_dim, num_experts_per_token, routed_expert_hidden_size } =
    geometry
  const columns = Math.max(prefill, ...expertColumns, ...trunkColumns)
  const widest = Math.max(4 * hidden_size, kda_num_heads * kda_head_dim, geometry.intermediate_size)
  const pairs = num_experts_per_token * routed_expert_hidden_size
  return Math.max(columns * widest, pairs, geometry.vocab_size)
}

/** What all works share, in bytes; states and caches of the attention rows come on top of it. */
export const operandBytes = (sizes: BenchSizes): number =>
  trunkBytes(sizes) + matrixCount(sizes) * matrixBytes(sizes) + 8 * rowNumbers(sizes)

/** Weights, inputs and outputs of all works. Works run one after the other, so the same memory serves them all. */
export class Operands implements Disposable {
  /** bf16 numbers of both signs. */
  readonly trunk: Region
  /** MXFP4 matrices one after the other, codes before scales. */
  readonly experts: Region
  /** Inputs between -1/8 and 1/8, and where results go. */
  readonly x: Float32Array
  readonly out: Float32Array

  /** @throws ERR_BENCH_MEMORY when `bytes`, what the whole run needs, is not there */
  constructor(sizes: BenchSizes, bytes: number) {
    if (bytes > availableMemory()) {
      const message = `the benchmark needs ${gigabytes(bytes)} of memory, ${gigabytes(availableMemory())} are free`
      throw new BenchError('ERR_BENCH_MEMORY', message)
    }
    this.trunk = allocRegion(trunkBytes(sizes))
    this.experts = allocRegion(matrixCount(sizes) * matrixBytes(sizes))
    fill(this.trunk, (word) => ((word >>> 8) & 0x80ff80ff) | 0x3c003c00)
    fill(this.experts, (word) => word)
    const codeBytes = matrixNumbers(sizes.geometry) / 2
    for (let at = codeBytes; at < this.experts.bytes; at += matrixBytes(sizes)) {
      const scales = this.experts.view(at, codeBytes / 16)
      for (let i = 0; i < scales.length; i++) scales[i] = 118 + (scales[i]! & 7)
    }
    this.x = waves(rowNumbers(sizes), 1 / 8)
    this.out = new Float32Array(rowNumbers(sizes))
  }

  [Symbol.dispose](): void {
    this.trunk.close()
    this.experts.close()
  }
}

/** Numbers of both signs and of all sizes up to `scale`. */
export const waves = (length: number, scale: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => scale * Math.sin(0.7 * i + 0.3))

/** An amount of memory in words. */
export const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`

/** Words of a linear congruential generator, each as `word` makes it; beyond the first 64 MiB they repeat. */
const fill = (region: Region, word: (random: number) => number): void => {
  const first = region.view(0, Math.min(FILL_BYTES, region.bytes))
  const words = new Uint32Array(first.buffer, first.byteOffset, first.byteLength >>> 2)
  for (let i = 0, state = 1; i < words.length; i++) {
    state = Math.imul(state, 1664525) + 1013904223
    words[i] = word(state)
  }
  for (let at = first.length; at < region.bytes; at += first.length) {
    const rest = Math.min(first.length, region.bytes - at)
    region.view(at, rest).set(first.subarray(0, rest))
  }
}
