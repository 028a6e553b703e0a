/** One native call of a model, or one wait for the disk. Times are those of `performance.now()`, in milliseconds. */
export interface Span {
  /** `block.part`: see `Watch`. */
  readonly name: string
  /** 0-based; null outside the layers: embedding and head */
  readonly layer: number | null
  readonly startMs: number
  readonly endMs: number
}

/** Is told about each span when it has ended; must not throw. Spans of one model never overlap. */
export type OnSpan = (span: Span) => void

/**
 * Gives back a part that reports the named methods as spans, or the part itself when nobody watches. Blocks are `embed`,
 * `trunk` (`trunk.wait`: until what a layer begins with has been read), `residual`, `attention`, `dense`, `moe` (one product for router, latent and shared experts), `router`, `shared`,
 * `experts` (`experts.submit` starts reads, `experts.wait` waits for one), `latent`,
 * `lookahead` and `head`.
 */
export type Watch = <T extends object>(part: T, names: { readonly [M in keyof T]?: string }) => T

/** What parts are bound with when nobody watches: costs nothing. */
export const unwatched: Watch = (part) => part

/** Reports the calls of one layer's parts. */
export const watchLayer =
  (onSpan: OnSpan, layer: number | null): Watch =>
  (part, names) =>
    // over an empty object, because a proxy may not replace the members of a frozen one
    new Proxy({} as typeof part, {
      get: (_, key) => {
        const member: unknown = Reflect.get(part, key, part)
        if (typeof member !== 'function') return member
        const name = (names as Record<PropertyKey, string | undefined>)[key]
        if (name === undefined) return member.bind(part)
        return (...values: unknown[]) => {
          const startMs = performance.now()
          try {
            return Reflect.apply(member, part, values)
          } finally {
            onSpan({ name, layer, startMs, endMs: performance.now() })
          }
        }
      }
    })
