/** A seeded source of numbers in [0, 1). */
export type Random = () => number

export const seeded = (seed: number): Random => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const KEYS = [
  'a',
  'ab',
  'abc',
  'na"me',
  'back\\slash',
  'tab\tkey',
  'ключ',
  '😀',
  '',
  'toString',
  '7',
  'a b',
  'a/b~c'
]
const TEXTS = ['', 'x', 'red', 'reddish', 'say "hi"', 'été', '\n', '😀', '</s>', '<|close|>']

export const below = (random: Random, n: number): number => Math.floor(random() * n)
const pick = <T>(random: Random, list: readonly T[]): T => list[below(random, list.length)]!
const some = <T>(random: Random, list: readonly T[], most: number): T[] => {
  const left = [...list]
  return Array.from({ length: below(random, most + 1) }, () => left.splice(below(random, left.length), 1)[0]!)
}

const number = (random: Random): number => {
  const magnitude = pick(random, [1, 10, 1000, 1e6, 0.01])
  const value = (random() - 0.5) * magnitude
  return pick(random, [Math.round(value), Number(value.toFixed(3)), value, 0])
}

const range = (random: Random, integer: boolean): object => {
  const low = integer ? Math.round(number(random)) : number(random)
  const high = low + (integer ? 2 + below(random, 2000) : 0.5 + random() * 100)
  return {
    ...pick(random, [{}, { minimum: low }, { exclusiveMinimum: low }]),
    ...pick(random, [{}, { maximum: high }, { exclusiveMaximum: high }])
  }
}

const constant = (random: Random, depth: number): unknown => {
  const kind = below(random, depth > 0 ? 7 : 5)
  if (kind === 0) return pick(random, TEXTS)
  if (kind === 1) return number(random)
  if (kind === 2) return random() < 0.5
  if (kind === 3) return null
  if (kind === 4) return pick(random, [1e21, -7, 1.5e-7, 12345678901])
  if (kind === 5) return Array.from({ length: below(random, 3) }, () => constant(random, depth - 1))
  return Object.fromEntries(some(random, KEYS, 2).map((key) => [key, constant(random, depth - 1)]))
}

const object = (random: Random, depth: number): object => {
  const keys = some(random, KEYS, 4)
  const properties = Object.fromEntries(keys.map((key) => [key, schema(random, depth - 1)]))
  const open = pick<object>(random, [
    {},
    {},
    { additionalProperties: false },
    { additionalProperties: true },
    { additionalProperties: schema(random, 0) }
  ])
  const required = some(random, keys, keys.length)
  if (random() < 0.1 && !('additionalProperties' in open && open.additionalProperties === false)) {
    required.push('undeclared')
  }
  return { type: 'object', properties, ...(random() < 0.8 ? { required } : {}), ...open }
}

const array = (random: Random, depth: number): object => {
  const minItems = below(random, 3)
  const maxItems = minItems + below(random, 3)
  const bounds = pick<object>(random, [{ maxItems }, { minItems, maxItems }, { minItems }])
  if (random() < 0.3) {
    const prefixItems = [schema(random, depth - 1), schema(random, depth - 1)]
    const items = pick<unknown>(random, [false, schema(random, depth - 1)])
    return { type: 'array', prefixItems, items, maxItems: 4 }
  }
  return { type: 'array', items: schema(random, depth - 1), ...bounds }
}

const text = (random: Random): object => {
  const minLength = below(random, 4)
  const maxLength = minLength + below(random, 8)
  return {
    type: 'string',
    ...pick<object>(random, [{}, { minLength }, { maxLength }, { minLength, maxLength }])
  }
}

const choice = (random: Random, depth: number): object => {
  if (random() < 0.5) return { anyOf: [schema(random, depth - 1), schema(random, depth - 1)] }
  if (random() < 0.5) return { oneOf: [text(random), { type: 'integer' }, { type: 'null' }] }
  const tagged = (tag: string) => ({
    type: 'object',
    properties: { kind: { const: tag }, value: schema(random, depth - 1) },
    required: ['kind']
  })
  return { oneOf: [tagged('a'), tagged('b')] }
}

/** A schema of the supported subset, nested at most `depth` levels. */
export const schema = (random: Random, depth: number): unknown => {
  const kind = below(random, depth > 0 ? 12 : 7)
  if (kind === 0) return text(random)
  if (kind === 1) return { type: 'integer', ...range(random, true) }
  if (kind === 2) return { type: 'number', ...range(random, false) }
  if (kind === 3) return { type: pick(random, ['boolean', 'null']), title: 'A title' }
  if (kind === 4) return { enum: [constant(random, 2), constant(random, 2)], description: 'one of these' }
  if (kind === 5) return { const: constant(random, 2) }
  if (kind === 6)
    return pick<unknown>(random, [{ type: ['string', 'null'], maxLength: 5 }, true, {}, text(random)])
  if (kind === 7) return choice(random, depth)
  if (kind === 8) return { $ref: '#/$defs/tree' }
  if (kind === 9) return array(random, depth)
  return object(random, depth)
}

/** A whole schema: its references have something to refer to. */
export const rootSchema = (random: Random): object => {
  const tree = {
    type: 'object',
    properties: {
      leaf: text(random),
      branches: { type: 'array', items: { $ref: '#/$defs/tree' }, maxItems: 2 }
    },
    required: ['leaf']
  }
  return { ...(pick(random, [object, array, choice])(random, 3) as object), $defs: { tree } }
}
