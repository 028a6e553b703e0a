import type { State } from './automaton.js'
import type { TokenTable } from './token-table.js'

/** In place of an id where no token ends. */
export const NO_TOKEN = -1

/**
 * Tokens as a tree of bytes, its nodes in preorder: a step into the tree is the next node, and a step past a subtree is
 * `end`. So a walk is one loop over four arrays.
 */
export class TokenTrie {
  readonly nodes: number
  readonly byte: Uint8Array
  /** bytes before the node's own */
  readonly depth: Uint16Array
  readonly end: Int32Array
  readonly id: Int32Array
  readonly #states: State[] = []

  /** sorted: ids of the table, not empty, in the order of their bytes, no two of which are equal */
  constructor(table: TokenTable, sorted: Uint32Array) {
    const most = sorted.reduce((sum, id) => sum + table.starts[id + 1]! - table.starts[id]!, 0)
    this.byte = new Uint8Array(most)
    this.depth = new Uint16Array(most)
    this.end = new Int32Array(most)
    this.id = new Int32Array(most).fill(NO_TOKEN)
    this.nodes = this.#build(table, sorted)
  }

  #build({ bytes, starts }: TokenTable, sorted: Uint32Array): number {
    const open: number[] = []
    let nodes = 0
    let before = 0
    for (const id of sorted) {
      const at = starts[id]!
      const length = starts[id + 1]! - at
      let shared = 0
      while (shared < open.length && bytes[before + shared] === bytes[at + shared]) shared++
      while (open.length > shared) this.end[open.pop()!] = nodes
      for (let depth = shared; depth < length; depth++) {
        this.byte[nodes] = bytes[at + depth]!
        this.depth[nodes] = depth
        open.push(nodes++)
      }
      this.id[nodes - 1] = id
      before = at
    }
    while (open.length > 0) this.end[open.pop()!] = nodes
    return nodes
  }

  /** Sets the bit of every token that may come in this state. words: u32 [vocab / 32, rounded up] */
  allow(start: State, words: Uint32Array): void {
    const states = this.#states
    for (let node = 0; node < this.nodes; ) {
      const depth = this.depth[node]!
      const before = depth === 0 ? start : states[depth - 1]!
      const after = before.step(this.byte[node]!)
      if (after === null) {
        node = this.end[node]!
        continue
      }
      states[depth] = after
      const id = this.id[node]!
      if (id !== NO_TOKEN) words[id >>> 5]! |= 1 << (id & 31)
      node++
    }
  }
}
