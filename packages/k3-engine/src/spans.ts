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
  (part, names) => {
    const timed = new Map<PropertyKey, (...values: unknown[]) => unknown>()
    for (const [key, name] of Object.entries<string>(names as Record<string, string>)) {
      const method = Reflect.get(part, key, part) as (...values: unknown[]) => unknown
      timed.set(key, (...values) => {
        const startMs = performance.now()
        try {
          return Reflect.apply(method, part, values)
        } finally {
          onSpan({ name, layer, startMs, endMs: performance.now() })
        }
      })
    }
    // over an empty object, because a proxy may not replace the members of a frozen one
    return new Proxy({} as typeof part, { get: (_, key) => timed.get(key) ?? memberOf(part, key) })
  }

const memberOf = (part: object, key: PropertyKey): unknown => {
  const member: unknown = Reflect.get(part, key, part)
  return typeof member === 'function' ? member.bind(part) : member
}
