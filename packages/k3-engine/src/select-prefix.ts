/**
 * Weighted quickselect. Tokens have an order: falling key, the lower id first on ties. Moves the shortest prefix of that
 * order whose measure reaches `target` to the front of `order`, itself in no particular order but for its last token,
 * which stands last; returns the prefix's length. Linear time, whatever the keys are.
 * order: the first `length` are distinct ids. keys: f64 by id. measures: f64 by id, positive; null counts tokens.
 */
export const selectPrefix = (
  order: Uint32Array,
  length: number,
  keys: Float64Array,
  measures: Float64Array | null,
  target: number
): number => {
  let low = 0
  let high = length
  let before = 0
  while (high - low > 1) {
    const pivot = takePivot(order, low, high, keys)
    const key = keys[pivot]!
    let at = low
    let sum = 0
    for (let i = low; i < high - 1; i++) {
      const id = order[i]!
      const mine = keys[id]!
      if (mine < key || (mine === key && id > pivot)) continue
      sum += measures === null ? 1 : measures[id]!
      order[i] = order[at]!
      order[at++] = id
    }
    order[high - 1] = order[at]!
    order[at] = pivot
    if (before + sum >= target) {
      high = at
      continue
    }
    before += sum + (measures === null ? 1 : measures[pivot]!)
    if (before >= target) return at + 1
    low = at + 1
  }
  return high
}

/** Moves the median of the first, middle and last token to the end, and returns it. */
const takePivot = (order: Uint32Array, low: number, high: number, keys: Float64Array): number => {
  const middle = (low + high) >>> 1
  const last = high - 1
  const [a, b, c] = [keys[order[low]!]!, keys[order[middle]!]!, keys[order[last]!]!]
  const at = a < b ? (b < c ? middle : a < c ? last : low) : a < c ? low : b < c ? last : middle
  const pivot = order[at]!
  order[at] = order[last]!
  order[last] = pivot
  return pivot
}
