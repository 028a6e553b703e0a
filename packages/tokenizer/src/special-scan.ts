interface Node {
  special: Special | undefined // the name that ends here
  readonly next: Map<number, Node>
}

/** A special token as it is met in text. */
export interface Special {
  readonly id: number
  readonly lengthBytes: number
}

/** Finds the names of special tokens in UTF-8 text. */
export class SpecialScan {
  readonly #root: Node = { special: undefined, next: new Map() }
  readonly #starts = new Uint8Array(256) // 1 for the first bytes of names

  constructor(names: ReadonlyMap<string, number>) {
    const encoder = new TextEncoder()
    for (const [name, id] of names) {
      const bytes = encoder.encode(name)
      this.#starts[bytes[0]!] = 1
      let node = this.#root
      for (const byte of bytes) {
        let child = node.next.get(byte)
        if (child === undefined) {
          child = { special: undefined, next: new Map() }
          node.next.set(byte, child)
        }
        node = child
      }
      node.special = { id, lengthBytes: bytes.length }
    }
  }

  /** Where the leftmost name in `bytes[from .. end)` begins; `end` when there is none. */
  next(bytes: Uint8Array, from: number, end: number): number {
    const starts = this.#starts
    for (let at = from; at < end; at++) {
      if (starts[bytes[at]!] === 1 && this.at(bytes, at, end) !== undefined) return at
    }
    return end
  }

  /** The special token whose name begins at `from`; no name begins with another one. */
  at(bytes: Uint8Array, from: number, end: number): Special | undefined {
    let node: Node | undefined = this.#root
    for (let at = from; at < end; at++) {
      node = node.next.get(bytes[at]!)
      if (node === undefined || node.special !== undefined) return node?.special
    }
    return undefined
  }
}
