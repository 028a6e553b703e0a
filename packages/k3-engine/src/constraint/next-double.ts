/** The least double above `x`; infinities stay. */
export const nextUp = (x: number): number => {
  if (!Number.isFinite(x)) return x
  if (x === 0) return Number.MIN_VALUE
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, x)
  view.setBigInt64(0, view.getBigInt64(0) + (x > 0 ? 1n : -1n))
  return view.getFloat64(0)
}

/** The greatest double below `x`; infinities stay. */
export const nextDown = (x: number): number => -nextUp(-x)
