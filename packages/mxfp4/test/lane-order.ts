// The order of docs/NUMERICS.md written down a second time, without the kernel's code: float32 in JavaScript.

const words = new Uint32Array(2) // low word first
const double = new Float64Array(words.buffer)

/** a * b + c rounded once to float32. The double sum is rounded to odd, so that rounding it again is harmless. */
export const fma = (a: number, b: number, c: number): number => {
  const product = a * b
  const sum = product + c
  const part = sum - product
  const rest = product - (sum - part) + (c - part)
  if (rest === 0 || !Number.isFinite(sum)) return Math.fround(sum)
  double[0] = sum
  const even = (words[0]! & 1) === 0
  if (even && rest > 0 === sum > 0) words[0]! += 1
  else if (even) {
    if (words[0] === 0) words[1]! -= 1
    words[0]! -= 1
  }
  return Math.fround(double[0]!)
}

/** The fixed tree: lane j += lane j + 8, then j + 4, j + 2, j + 1. */
const fold = (lanes: Float32Array): number => {
  for (let width = 8; width >= 1; width /= 2) for (let j = 0; j < width; j++) lanes[j]! += lanes[j + width]!
  return lanes[0]!
}

/** One dot product of decoded (unscaled) values and scales, one a group of 32, with x. */
export const dot = (values: Float32Array, scales: Float32Array, x: Float32Array): number => {
  const lanes = new Float32Array(16)
  for (let begin = 0; begin < values.length; begin += 8) {
    let p = Math.fround(values[begin]! * x[begin]!)
    for (let c = begin + 1; c < begin + 8; c++) p = fma(values[c]!, x[c]!, p)
    const lane = (begin / 8) % 16
    lanes[lane] = fma(p, scales[Math.floor(begin / 32)]!, lanes[lane]!)
  }
  return fold(lanes)
}

/** One group of 32 inputs in 8 bits: their integers, and half the step between two of them. */
const eightBits = (x: Float32Array): { codes: Float32Array; half: number } => {
  const largest = x.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  if (largest < 2 ** -100) return { codes: new Float32Array(32), half: 0 }
  const inverse = Math.fround(127 / largest)
  const magic = 1.5 * 2 ** 23
  const codes = x.map((value) => Math.fround(Math.fround(value * inverse) + magic) - magic)
  return { codes, half: Math.fround(largest / 254) }
}

/** The same product with int8 activations. */
export const dotInt8 = (values: Float32Array, scales: Float32Array, x: Float32Array): number => {
  const lanes = new Float32Array(16)
  for (let begin = 0; begin < values.length; begin += 32) {
    const { codes, half } = eightBits(x.subarray(begin, begin + 32))
    for (let part = 0; part < 32; part += 8) {
      let sum = 0
      for (let c = part; c < part + 8; c++) sum += 2 * values[begin + c]! * codes[c]!
      const lane = ((begin + part) / 8) % 16
      lanes[lane] = fma(Math.fround(sum * half), scales[begin / 32]!, lanes[lane]!)
    }
  }
  return fold(lanes)
}
