import type { Cell, Frame, TextRun } from './automaton.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Where in a character the next byte stands. `lead` is between two characters. */
type Place =
  | 'lead'
  | 'tail1'
  | 'tail2'
  | 'tail3'
  | 'afterE0'
  | 'afterED'
  | 'afterF0'
  | 'afterF4'
  | 'escape'
  | 'hex1'
  | 'hex2'
  | 'hex2OfD'
  | 'hex3'
  | 'hex4'

const inside = (low: number, high: number, then: Place): ((byte: number) => Place | null) => {
  return (byte) => (byte >= low && byte <= high ? then : null)
}
const isHex = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66)
const hex = (then: Place) => (byte: number) => (isHex(byte) ? then : null)

/** After a lead byte: the well-formed sequences of UTF-8, and `\u` escapes but for surrogates. */
const WITHIN: Readonly<Record<Exclude<Place, 'lead' | 'escape'>, (byte: number) => Place | null>> = {
  tail1: inside(0x80, 0xbf, 'lead'),
  tail2: inside(0x80, 0xbf, 'tail1'),
  tail3: inside(0x80, 0xbf, 'tail2'),
  afterE0: inside(0xa0, 0xbf, 'tail1'),
  afterED: inside(0x80, 0x9f, 'tail1'),
  afterF0: inside(0x90, 0xbf, 'tail2'),
  afterF4: inside(0x80, 0x8f, 'tail2'),
  hex1: (byte) => (byte === 0x44 || byte === 0x64 ? 'hex2OfD' : hex('hex2')(byte)),
  hex2: hex('hex3'),
  hex2OfD: inside(0x30, 0x37, 'hex3'),
  hex3: hex('hex4'),
  hex4: hex('lead')
}

const afterLead = (byte: number): Place | null => {
  if (byte < 0x80) return 'lead'
  if (byte >= 0xc2 && byte <= 0xdf) return 'tail1'
  if (byte === 0xe0) return 'afterE0'
  if (byte === 0xed) return 'afterED'
  if (byte >= 0xe1 && byte <= 0xef) return 'tail2'
  if (byte === 0xf0) return 'afterF0'
  if (byte >= 0xf1 && byte <= 0xf3) return 'tail3'
  return byte === 0xf4 ? 'afterF4' : null
}

// Keys have one spelling each, so that no spelling of a declared key passes for another key.
const ESCAPES = { json: '"\\/bfnrtu', key: '"\\bfnrt', raw: '' }

/** How many characters a text may have. */
export interface TextLimits {
  readonly min: number
  readonly max: number
}

/** The place after `byte` in a text of this kind; null when it may not come, and for the quote that ends it. */
const follow = (place: Place, byte: number, kind: TextRun['kind']): Place | null => {
  if (place === 'escape') {
    if (!ESCAPES[kind].includes(String.fromCharCode(byte))) return null
    return byte === 0x75 ? 'hex1' : 'lead'
  }
  if (place !== 'lead') return WITHIN[place](byte)
  if (kind === 'raw') return afterLead(byte)
  if (byte < 0x20 || byte === QUOTE) return null
  return byte === BACKSLASH ? 'escape' : afterLead(byte)
}

const PLACES: readonly Place[] = [
  'lead',
  'escape',
  ...(Object.keys(WITHIN) as Exclude<Place, 'lead' | 'escape'>[])
]

/** The number of the place between two characters in a `placeTable`, and what stands there for none. */
export const BETWEEN = 0
export const NO_PLACE = 0xff

/** Where text of a kind goes on: u8 [places, 256], the number of the next place. A vocabulary has a million bytes to read. */
export const placeTable = (kind: TextRun['kind']): Uint8Array =>
  Uint8Array.from({ length: PLACES.length * 256 }, (_, i) => {
    const then = follow(PLACES[i >>> 8]!, i & 0xff, kind)
    return then === null ? NO_PLACE : PLACES.indexOf(then)
  })

/** The characters of a JSON string after its opening quote, or raw text that whatever follows ends. */
export class TextFrames {
  readonly #kind: 'json' | 'raw'
  readonly #limits: TextLimits
  readonly #frames = new Map<string, Frame>()

  constructor(kind: 'json' | 'raw', limits: TextLimits) {
    this.#kind = kind
    this.#limits = limits
  }

  /** The place after `count` characters; a character counts from its first byte on. */
  at(count: number, place: Place = 'lead'): Frame {
    const { min, max } = this.#limits
    const known = max === Number.POSITIVE_INFINITY ? Math.min(count, min) : count
    const key = `${known} ${place}`
    let frame = this.#frames.get(key)
    if (frame === undefined) {
      frame = this.#make(known, place)
      this.#frames.set(key, frame)
    }
    return frame
  }

  #make(count: number, place: Place): Frame {
    const { min, max } = this.#limits
    const kind = this.#kind
    const mayEnd = place === 'lead' && count >= min
    return {
      nullable: kind === 'raw' && mayEnd,
      text: place === 'lead' ? { kind, most: max - count, least: Math.max(0, min - count) } : null,
      step: (byte, next) => {
        if (kind === 'json' && place === 'lead' && byte === QUOTE) return mayEnd ? [next] : []
        if (place === 'lead' && count === max) return []
        const then = follow(place, byte, kind)
        return then === null ? [] : [next.push(this.at(place === 'lead' ? count + 1 : count, then))]
      }
    }
  }
}

/** A key, after its opening quote, that is none of the declared ones. */
export class OtherKeyFrames {
  readonly #declared: readonly string[]
  readonly #frames = new Map<string, Frame>()

  /** declared: the keys as JSON spells them, without quotes, one char a byte */
  constructor(declared: readonly string[]) {
    this.#declared = declared
  }

  /** The place after the opening quote. */
  get start(): Frame {
    return this.at(this.#declared.length === 0 ? null : '')
  }

  /** The place after `prefix`, which is null when no declared key begins like this. */
  at(prefix: string | null, place: Place = 'lead'): Frame {
    const key = `${place} ${prefix === null ? '' : `=${prefix}`}`
    let frame = this.#frames.get(key)
    if (frame === undefined) {
      frame = this.#make(prefix, place)
      this.#frames.set(key, frame)
    }
    return frame
  }

  #make(prefix: string | null, place: Place): Frame {
    return {
      nullable: false,
      text:
        place === 'lead'
          ? { kind: 'key', most: Number.POSITIVE_INFINITY, least: prefix === null ? 0 : null }
          : null,
      step: (byte, next) => {
        if (place === 'lead' && byte === QUOTE) {
          return prefix !== null && this.#declared.includes(prefix) ? [] : [next]
        }
        const then = follow(place, byte, 'key')
        return then === null ? [] : [next.push(this.at(this.#longer(prefix, byte), then))]
      }
    }
  }

  #longer(prefix: string | null, byte: number): string | null {
    if (prefix === null) return null
    const longer = prefix + String.fromCharCode(byte)
    return this.#declared.some((key) => key.startsWith(longer)) ? longer : null
  }
}

/** Bytes in a fixed order. */
export class LiteralFrames {
  readonly #frames: readonly Frame[]

  constructor(bytes: Uint8Array) {
    const frames: Frame[] = []
    for (let i = bytes.length - 1; i >= 0; i--) {
      const then = frames[0]
      const step = (byte: number, next: Cell): readonly Cell[] => {
        if (byte !== bytes[i]) return []
        return then === undefined ? [next] : [next.push(then)]
      }
      frames.unshift({ nullable: false, text: null, step })
    }
    this.#frames = frames
  }

  /** The place before the first byte. There has to be one. */
  get start(): Frame {
    return this.#frames[0]!
  }
}

const EMPTY: Frame = { nullable: true, text: null, step: () => [] }

/** The bytes of a text, possibly none. */
export const literal = (text: string): Frame => {
  const bytes = new TextEncoder().encode(text)
  return bytes.length === 0 ? EMPTY : new LiteralFrames(bytes).start
}

/** One space or none: what models write after a comma and a colon. */
export const OPTIONAL_SPACE: Frame = {
  nullable: true,
  text: null,
  step: (byte, next) => (byte === 0x20 ? [next] : [])
}
