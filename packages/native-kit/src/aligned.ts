/** Two functions of an addon, see native-kit's glue.h. */
export interface FloatMemory {
  /** Zeros on huge pages, or undefined where there are none for so many. */
  hugeFloats(length: number): Float32Array | undefined
  /** Numbers from the start of the array to the next border of a cache line. */
  settleFloats(array: Float32Array): number
}

/**
 * Zeros that start at the border of a cache line, on huge pages from 2 MiB up where the system has them: no load of a
 * whole register straddles two lines, and a stream through memory waits for few page table walks. Either is up to twice
 * the time. The buffer of an array on huge pages cannot be transferred to another thread.
 */
export const alignedFloats = (length: number, memory: FloatMemory): Float32Array => {
  const huge = memory.hugeFloats(length)
  if (huge !== undefined) return huge
  const padded = new Float32Array(length + 15)
  const first = memory.settleFloats(padded)
  return padded.subarray(first, first + length)
}
