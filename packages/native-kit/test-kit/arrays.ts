/** An output array that no op has written yet. */
export const poisoned = (length: number): Float32Array => new Float32Array(length).fill(NaN)

/** The bit patterns, so that -0 and 0 differ. */
export const bitsOf = (x: Float32Array): Uint32Array => new Uint32Array(x.buffer, x.byteOffset, x.length)

/** The same numbers `by` places behind the border of a cache line, between NaN that must stay out of every result. */
export const movedBy = (by: number, x: Float32Array): Float32Array => {
  const floats = poisoned(x.length + by + 1)
  floats.set(x, by)
  return floats.subarray(by, by + x.length)
}

/** Bit for bit the same: by bytes, because comparing large arrays element by element is slow in a test runner. */
export const sameBits = (a: Float32Array, b: Float32Array): boolean =>
  Buffer.from(a.buffer, a.byteOffset, a.byteLength).equals(Buffer.from(b.buffer, b.byteOffset, b.byteLength))

/** A seeded generator of 32-bit words (mulberry32). */
export const words = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return (t ^ (t >>> 14)) >>> 0
  }
}

/** Seeded numbers, roughly normal, times `scale`. */
export const gaussian = (length: number, seed: number, scale = 1): Float32Array => {
  const next = words(seed)
  const uniform = () => next() / 2 ** 32 - 0.5
  return Float32Array.from({ length }, () => scale * 2 * (uniform() + uniform() + uniform()))
}
