/**
 * xoshiro128** (Blackman and Vigna), its four words filled by splitmix64 from the seed. The sequence is part of the
 * public contract: the same seed gives the same numbers in every version.
 */
export class Random {
  readonly #s = new Uint32Array(4)

  /** @param seed whole number, 0 … 2^64 - 1 */
  constructor(seed: bigint) {
    let state = seed
    for (let i = 0; i < 4; i += 2) {
      state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n)
      let z = state
      z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n)
      z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn)
      z ^= z >> 31n
      this.#s[i] = Number(z & 0xffffffffn)
      this.#s[i + 1] = Number(z >> 32n)
    }
  }

  /** The next number in [0, 1), a multiple of 2^-32. */
  next(): number {
    const s = this.#s
    const [a, b, c, d] = [s[0]!, s[1]!, s[2]!, s[3]!]
    const scrambled = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0
    s[2] = c ^ a
    s[3] = d ^ b
    s[1] = b ^ s[2]!
    s[0] = a ^ s[3]!
    s[2] = s[2]! ^ (b << 9)
    s[3] = rotate(s[3]!, 11)
    return scrambled / 2 ** 32
  }
}

const rotate = (x: number, bits: number): number => (x << bits) | (x >>> (32 - bits))
