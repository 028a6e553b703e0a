/**
 * Zeros that start at the border of a cache line, on huge pages from 2 MiB up where the system has them: no load of a
 * whole register straddles two lines, and a stream through memory waits for few page table walks. Either is up to twice
 * the time. `settleFloats` is the addon's function of that name.
 */
export const alignedFloats = (
  length: number,
  settleFloats: (array: Float32Array) => number
): Float32Array => {
  const padded = new Float32Array(length + 15)
  const first = settleFloats(padded)
  return padded.subarray(first, first + length)
}
