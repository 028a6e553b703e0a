/** Where the always-active weights lie: what a plan decides and the weights are opened with. */
export interface TrunkPlacement {
  /**
   * `mmap`: the shards are mapped and their pages belong to the system. `resident`: every layer and the head are read
   * once and stay. `stream`: pinned layers are read once and stay, the others go through a ring of buffers, each of
   * which holds the largest layer with experts; the dense layer is cut into pieces that fit one. Embedding rows are read
   * one by one, except from a mapping.
   */
  readonly mode: 'resident' | 'mmap' | 'stream'
  /** Ascending; all layers when resident, none when mapped. */
  readonly pinnedLayers: readonly number[]
  /** Buffers of the ring, at least 2 when anything is streamed; 0 otherwise. */
  readonly ringLayers: number
  /** Rows of the head that are read together into a ring buffer; the vocabulary when the head stays in memory. */
  readonly headRows: number
}
