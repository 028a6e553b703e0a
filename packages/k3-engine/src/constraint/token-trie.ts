import type { State } from './automaton.js'

/** A token as bytes. */
export interface Token {
  readonly id: number
  readonly bytes: Uint8Array
}

/** The order of tokens that a trie is built from. */
export const byBytes = ({ bytes: a }: Token, { bytes: b }: Token): number => {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return a.length - b.length
}

const NO_TOKEN = -1

/**
 * Tokens as a tree of bytes, its nodes in preorder: a step into the tree is the next node, and a step past a subtree is
 * `end`. So a walk is one loop over four arrays.
 */
export class TokenTrie {
  readonly #nodes: number
  readonly #byte: Uint8Array
  readonly #depth: Uint16Array
  readonly #end: Int32Array
  readonly #id: Int32Array
  readonly #states: State[] = []

  /** sorted: by bytes, no two of them equal and none empty */
  constructor(sorted: readonly Token[]) {
    const most = sorted.reduce((sum, { bytes }) => sum + bytes.length, 0)
    this.#byte = new Uint8Array(most)
    this.#depth = new Uint16Array(most)
    this.#end = new Int32Array(most)
    this.#id = new Int32Array(most).fill(NO_TOKEN)
    this.#nodes = this.#build(sorted)
  }

  #build(sorted: readonly Token[]): number {
    const open: number[] = []
    let nodes = 0
    let before: Uint8Array = new Uint8Array(0)
    for (const { id, bytes } of sorted) {
      let shared = 0
      while (shared < before.length && before[shared] === bytes[shared]) shared++
      while (open.length > shared) this.#end[open.pop()!] = nodes
      for (let depth = shared; depth < bytes.length; depth++) {
        this.#byte[nodes] = bytes[depth]!
        this.#depth[nodes] = depth
        open.push(nodes++)
      }
      this.#id[nodes - 1] = id
      before = bytes
    }
    while (open.length > 0) this.#end[open.pop()!] = nodes
    return nodes
  }

  /** Sets the bit of every token that may come in this state. words: u32 [vocab / 32, rounded up] */
  allow(start: State, words: Uint32Array): void {
    const states = this.#states
    for (let node = 0; node < this.#nodes; ) {
      const depth = this.#depth[node]!
      const before = depth === 0 ? start : states[depth - 1]!
      const after = before.step(this.#byte[node]!)
      if (after === null) {
        node = this.#end[node]!
        continue
      }
      states[depth] = after
      const id = this.#id[node]!
      if (id !== NO_TOKEN) words[id >>> 5]! |= 1 << (id & 31)
      node++
    }
  }
}
