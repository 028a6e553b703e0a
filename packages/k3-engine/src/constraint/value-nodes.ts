import type { Cell, Frame } from './automaton.js'
import type { NumberFrames } from './number-range.js'
import {
  LiteralFrames,
  literal,
  OPTIONAL_SPACE,
  OtherKeyFrames,
  TextFrames,
  type TextLimits
} from './text-frames.js'

/** A type of JSON, as XTML names it. */
export type JsonType = 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array'

/** A set of JSON values, as the place before the first byte of one of them. */
export interface ValueNode extends Frame {
  /** The single-typed nodes this one is made of; itself when it is one. */
  readonly leaves: readonly LeafNode[]
  /** Whether some value is finite, given the nodes for which that is known. */
  canEnd(known: ReadonlySet<ValueNode>): boolean
}

/** Values of one type. */
export interface LeafNode extends ValueNode {
  readonly type: JsonType
  /** The value without the quotes of a string: how XTML writes arguments. */
  readonly raw: Frame
}

const COMMA = 0x2c
const QUOTE = 0x22
const COLON = new LiteralFrames(Uint8Array.of(0x3a)).start

abstract class Leaf implements LeafNode {
  readonly nullable = false
  readonly text = null
  abstract readonly type: JsonType

  get leaves(): readonly LeafNode[] {
    return [this]
  }

  get raw(): Frame {
    return this
  }

  canEnd(_known: ReadonlySet<ValueNode>): boolean {
    return true
  }

  abstract step(byte: number, next: Cell): readonly Cell[]
}

/** One value: a member of an enumeration that is no list and no object. */
export class LiteralNode extends Leaf {
  readonly type: JsonType
  readonly value: string | number | boolean | null
  readonly #frame: Frame

  constructor(value: string | number | boolean | null) {
    super()
    this.value = value
    this.type = value === null ? 'null' : (typeof value as 'string' | 'number' | 'boolean')
    this.#frame = literal(JSON.stringify(value))
  }

  override get raw(): Frame {
    return typeof this.value === 'string' ? literal(this.value) : this
  }

  step(byte: number, next: Cell): readonly Cell[] {
    return this.#frame.step(byte, next)
  }
}

/** Strings of a length. */
export class StringNode extends Leaf {
  readonly type = 'string'
  readonly #limits: TextLimits
  readonly #inner: TextFrames

  constructor(limits: TextLimits) {
    super()
    this.#limits = limits
    this.#inner = new TextFrames('json', limits)
  }

  override get raw(): Frame {
    return new TextFrames('raw', this.#limits).at(0)
  }

  step(byte: number, next: Cell): readonly Cell[] {
    return byte === QUOTE ? [next.push(this.#inner.at(0))] : []
  }
}

/** Numbers in a range. */
export class NumberNode extends Leaf {
  readonly type = 'number'
  readonly #frames: NumberFrames

  constructor(frames: NumberFrames) {
    super()
    this.#frames = frames
  }

  step(byte: number, next: Cell): readonly Cell[] {
    return this.#frames.step(byte, next)
  }
}

/** How many items a list has, and which. */
export interface ArrayShape {
  readonly prefix: readonly ValueNode[]
  /** What follows the prefix; null for nothing. */
  readonly items: ValueNode | null
  readonly min: number
  readonly max: number
}

/** Lists. */
export class ArrayNode extends Leaf {
  readonly type = 'array'
  readonly #shape: ArrayShape
  readonly #frames = new Map<string, Frame>()

  constructor(shape: ArrayShape) {
    super()
    this.#shape = shape
  }

  override canEnd(known: ReadonlySet<ValueNode>): boolean {
    for (let i = 0; i < this.#shape.min; i++) {
      const item = this.#item(i)
      if (item === null || !known.has(item)) return false
      if (i >= this.#shape.prefix.length) break
    }
    return true
  }

  step(byte: number, next: Cell): readonly Cell[] {
    return byte === 0x5b ? [next.push(this.#at('open', 0))] : []
  }

  #item(index: number): ValueNode | null {
    const { prefix, items, max } = this.#shape
    if (index >= max) return null
    return index < prefix.length ? prefix[index]! : items
  }

  /** The place after `count` items; counts beyond which nothing changes are one place. */
  #at(phase: 'open' | 'after', count: number): Frame {
    const { prefix, min, max } = this.#shape
    const known = max === Number.POSITIVE_INFINITY ? Math.min(count, Math.max(min, prefix.length + 1)) : count
    const key = `${phase} ${known}`
    let frame = this.#frames.get(key)
    if (frame === undefined) {
      frame = { nullable: false, text: null, step: (byte, next) => this.#step(phase, known, byte, next) }
      this.#frames.set(key, frame)
    }
    return frame
  }

  #step(phase: 'open' | 'after', count: number, byte: number, next: Cell): readonly Cell[] {
    if (byte === 0x5d) return count >= this.#shape.min ? [next] : []
    const item = this.#item(count)
    if (item === null) return []
    const after = next.push(this.#at('after', count + 1))
    if (phase === 'open') return item.step(byte, after)
    return byte === COMMA ? [after.push(item).push(OPTIONAL_SPACE)] : []
  }
}

/** A declared key of an object. */
export interface Property {
  readonly name: string
  /** null: the key may not occur. */
  readonly value: ValueNode | null
  readonly required: boolean
}

/** Objects. Keys come in any order, each declared one at most once. */
export class ObjectNode extends Leaf {
  readonly type = 'object'
  readonly properties: readonly Property[]
  readonly #others: ValueNode | null
  readonly #otherKeys: OtherKeyFrames
  readonly #keys: readonly Frame[]
  readonly #required: bigint
  readonly #possible: bigint
  readonly #frames = new Map<string, Frame>()

  /** others: what values of undeclared keys are; null when there may be none */
  constructor(properties: readonly Property[], others: ValueNode | null) {
    super()
    const bits = (chosen: (property: Property) => boolean) =>
      properties.reduce((mask, property, i) => (chosen(property) ? mask | (1n << BigInt(i)) : mask), 0n)
    this.properties = properties
    this.#others = others
    this.#keys = properties.map(({ name }) => literal(JSON.stringify(name).slice(1)))
    this.#otherKeys = new OtherKeyFrames(properties.map(({ name }) => spelling(name)))
    this.#required = bits(({ required }) => required)
    this.#possible = bits(({ value }) => value !== null)
  }

  override canEnd(known: ReadonlySet<ValueNode>): boolean {
    return this.properties.every(({ required, value }) => !required || (value !== null && known.has(value)))
  }

  step(byte: number, next: Cell): readonly Cell[] {
    return byte === 0x7b ? [next.push(this.#at('open', 0n))] : []
  }

  #at(phase: 'open' | 'key' | 'after', seen: bigint): Frame {
    const key = `${phase} ${seen}`
    let frame = this.#frames.get(key)
    if (frame === undefined) {
      frame = { nullable: false, text: null, step: (byte, next) => this.#step(phase, seen, byte, next) }
      this.#frames.set(key, frame)
    }
    return frame
  }

  #step(phase: 'open' | 'key' | 'after', seen: bigint, byte: number, next: Cell): readonly Cell[] {
    if (byte === QUOTE) return phase === 'after' ? [] : this.#keysAfter(seen, next)
    if (byte === 0x7d && phase !== 'key') return (seen & this.#required) === this.#required ? [next] : []
    if (byte !== COMMA || phase !== 'after') return []
    const more = this.#others !== null || (this.#possible & ~seen) !== 0n
    return more ? [next.push(this.#at('key', seen)).push(OPTIONAL_SPACE)] : []
  }

  #keysAfter(seen: bigint, next: Cell): readonly Cell[] {
    const cells: Cell[] = []
    this.properties.forEach(({ value }, i) => {
      const bit = 1n << BigInt(i)
      if (value === null || (seen & bit) !== 0n) return
      cells.push(beforeValue(next.push(this.#at('after', seen | bit)), value).push(this.#keys[i]!))
    })
    if (this.#others !== null) {
      const after = beforeValue(next.push(this.#at('after', seen)), this.#others)
      cells.push(after.push(this.#otherKeys.start))
    }
    return cells
  }
}

const beforeValue = (after: Cell, value: ValueNode): Cell =>
  after.push(value).push(OPTIONAL_SPACE).push(COLON)

/** A key between its quotes, one char a byte. */
const spelling = (name: string): string =>
  String.fromCharCode(...new TextEncoder().encode(JSON.stringify(name).slice(1, -1)))

/** Values that are in any of the nodes. They may be given later, so that a node can contain itself. */
export class UnionNode implements ValueNode {
  readonly nullable = false
  readonly text = null
  #options: readonly ValueNode[] = []

  constructor(options: readonly ValueNode[] = []) {
    this.#options = options
  }

  include(options: readonly ValueNode[]): void {
    this.#options = options
  }

  get leaves(): readonly LeafNode[] {
    return this.#options.flatMap((option) => option.leaves)
  }

  canEnd(known: ReadonlySet<ValueNode>): boolean {
    return this.#options.some((option) => known.has(option))
  }

  step(byte: number, next: Cell): readonly Cell[] {
    return this.#options.flatMap((option) => option.step(byte, next))
  }
}
