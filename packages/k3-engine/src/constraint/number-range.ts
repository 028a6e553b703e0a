import type { Cell, Frame } from './automaton.js'

/** Most digits after the point, and most before it where nothing bounds a number: it stays exact enough and ends. */
export const FRACTION_DIGITS = 15
const WHOLE_DIGITS = 15

const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39

// the least double has 324 + 16 digits after the point
const POWERS: readonly bigint[] = Array.from({ length: 400 }, (_, n) => 10n ** BigInt(n))
const power = (n: number): bigint => POWERS[n]!

/** Bounds of a number, both inclusive; infinite where there is none. Their shortest decimal spelling counts. */
export interface NumberBounds {
  readonly min: number
  readonly max: number
  readonly integer: boolean
}

/** What may still follow some digits so that the value, in steps of 10^-fraction, stays in low … high. */
interface Magnitude {
  readonly low: bigint
  readonly high: bigint
  /** Of the numbers with so many digits before the point: whether all, some or none are in range. */
  readonly byDigits: readonly ('all' | 'some' | 'none')[]
}

/** Digits so far: all of them as one number, how many, and how many stand after the point (null: no point yet). */
interface Digits {
  readonly value: bigint
  readonly count: number
  readonly fraction: number | null
}

/**
 * Decimal numbers in a range, without exponents. A place is told by which completions it still has, not by its digits,
 * so that a grammar has few places: prefixes with the same completions are the same frame.
 */
export class NumberFrames implements Frame {
  readonly nullable = false
  readonly text = null
  /** Whether any number is in range. */
  readonly possible: boolean
  readonly #fraction: number
  readonly #positive: Magnitude | null
  readonly #negative: Magnitude | null
  readonly #frames = new Map<string, Frame>()
  readonly #minus: Frame

  constructor(bounds: NumberBounds) {
    this.#fraction = bounds.integer ? 0 : FRACTION_DIGITS
    const unbounded = power(WHOLE_DIGITS + this.#fraction) - 1n
    const low =
      bounds.min === Number.NEGATIVE_INFINITY ? -unbounded : decimalSteps(bounds.min, this.#fraction).ceiling
    const high =
      bounds.max === Number.POSITIVE_INFINITY ? unbounded : decimalSteps(bounds.max, this.#fraction).floor
    this.#positive = magnitude(low < 0n ? 0n : low, high, this.#fraction)
    this.#negative = magnitude(-high < 1n ? 1n : -high, -low, this.#fraction)
    this.possible = this.#positive !== null || this.#negative !== null
    const negative = this.#negative
    this.#minus = {
      nullable: false,
      text: null,
      step: (byte, next) => (negative === null ? [] : this.#first(byte, next, negative))
    }
  }

  step(byte: number, next: Cell): readonly Cell[] {
    if (byte === MINUS) return this.#negative === null ? [] : [next.push(this.#minus)]
    return this.#positive === null ? [] : this.#first(byte, next, this.#positive)
  }

  #first(byte: number, next: Cell, range: Magnitude): readonly Cell[] {
    const digit = byte - ZERO
    if (digit < 0 || digit > 9) return []
    return pushed(next, this.#enter({ value: BigInt(digit), count: 1, fraction: null }, range))
  }

  /** The place after these digits; null when nothing in range begins with them. */
  #enter(digits: Digits, range: Magnitude): Frame | null {
    const completions = this.#completions(digits, range)
    if (completions === '') return null
    let frame = this.#frames.get(completions)
    if (frame === undefined) {
      frame = this.#make(digits, range)
      this.#frames.set(completions, frame)
    }
    return frame
  }

  #make(digits: Digits, range: Magnitude): Frame {
    // a place is reached on many stacks, and what follows it is the same on all of them
    const known = new Map<number, Frame | null>()
    return {
      nullable: this.#mayEnd(digits, range),
      text: null,
      step: (byte, next) => {
        if (byte !== POINT && (byte < ZERO || byte > NINE)) return []
        let then = known.get(byte)
        if (then === undefined) {
          then = this.#after(digits, byte, range)
          known.set(byte, then)
        }
        return pushed(next, then)
      }
    }
  }

  #after({ value, count, fraction }: Digits, byte: number, range: Magnitude): Frame | null {
    if (byte === POINT) {
      if (fraction !== null || this.#fraction === 0) return null
      return this.#enter({ value, count, fraction: 0 }, range)
    }
    if (fraction === null ? value === 0n : fraction === this.#fraction) return null
    const longer = {
      value: value * 10n + BigInt(byte - ZERO),
      count: count + 1,
      fraction: fraction === null ? null : fraction + 1
    }
    return this.#enter(longer, range)
  }

  #mayEnd({ value, fraction }: Digits, { low, high }: Magnitude): boolean {
    if (fraction === 0) return false
    const steps = value * power(this.#fraction - (fraction === null ? 0 : fraction))
    return steps >= low && steps <= high
  }

  /** Names the set of completions; empty when there is none. */
  #completions(digits: Digits, range: Magnitude): string {
    const { value, count, fraction } = digits
    if (fraction !== null) {
      // at least one digit has to follow the point, and all zeros are among the completions of a full rest
      const rest = overlap(value, this.#fraction - fraction, range)
      return rest === null ? '' : `${fraction} ${rest}`
    }
    if (value === 0n) {
      const rest = overlap(value, this.#fraction, range)
      return rest === null ? '' : `zero ${rest}`
    }
    let parts = ''
    for (let total = count; total < range.byDigits.length; total++) {
      const known = range.byDigits[total]!
      const rest = known === 'some' ? overlap(value, total - count + this.#fraction, range) : known
      parts += rest === null || rest === 'none' ? ' -' : ` ${rest}`
    }
    return /\w/.test(parts) ? `${range === this.#negative}${parts}` : ''
  }
}

const pushed = (next: Cell, frame: Frame | null): readonly Cell[] =>
  frame === null ? [] : [next.push(frame)]

const magnitude = (low: bigint, high: bigint, fraction: number): Magnitude | null => {
  if (low > high) return null
  const byDigits: ('all' | 'some' | 'none')[] = ['none']
  for (let count = 1; power(count - 1 + fraction) <= high; count++) {
    const [first, last] = [power(count - 1 + fraction), power(count + fraction) - 1n]
    byDigits.push(last < low ? 'none' : first >= low && last <= high ? 'all' : 'some')
  }
  return { low, high, byDigits }
}

/** Which of the 10^more numbers that begin with these digits are in range, counted from the first of them. */
const overlap = (value: bigint, more: number, range: Magnitude): string | null => {
  const { low, high } = range
  const first = value * power(more)
  const last = first + power(more) - 1n
  if (first > high || last < low) return null
  return `${low > first ? low - first : 0n}:${high < last ? high - first : 'all'}`
}

/** The shortest decimal that reads back as `value`, in steps of 10^-digits, rounded both ways. */
const decimalSteps = (value: number, digits: number): { floor: bigint; ceiling: bigint } => {
  const [coefficient = '0', exponent = '0'] = String(value).split('e')
  const [whole = '0', part = ''] = coefficient.split('.')
  const shift = Number(exponent) - part.length + digits
  const scaled = BigInt(whole.replace('-', '') + part)
  const sign = value < 0 ? -1n : 1n
  if (shift >= 0) {
    const exact = sign * scaled * power(shift)
    return { floor: exact, ceiling: exact }
  }
  const unit = power(-shift)
  const quotient = scaled / unit
  if (scaled % unit === 0n) return { floor: sign * quotient, ceiling: sign * quotient }
  return sign > 0n
    ? { floor: quotient, ceiling: quotient + 1n }
    : { floor: -quotient - 1n, ceiling: -quotient }
}
