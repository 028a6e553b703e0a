export interface FullSizeTensor {
  name: string
  dtype: 'F32' | 'BF16' | 'U8'
  shape: number[]
}

export interface ShardFacts {
  file: string
  file_bytes: number
  header_bytes: number
  tensors: number
}

export const schema: {
  totals: { records: number; tensor_bytes: number; file_bytes: number; shards: number }
  shards: ShardFacts[]
}
export function fullSizeShards(): FullSizeTensor[][]
export function headerOf(shard: FullSizeTensor[]): Uint8Array
export function fullSizeIndex(shards: FullSizeTensor[][]): string
