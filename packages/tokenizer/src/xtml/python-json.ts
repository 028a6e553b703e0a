import { isList, JsonNumber, type JsonObject, type JsonValue } from './json.js'

/** Python `repr` of a float, in the spelling of `json.dumps` for the three values that are not finite. */
export const floatText = (value: number): string => {
  if (!Number.isFinite(value)) return String(value)
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  const [mantissa, exponentText] = Math.abs(value).toExponential().split('e') as [string, string]
  const exponent = Number(exponentText)
  const digits = mantissa.replace('.', '')
  if (exponent < -4 || exponent >= 16) {
    const size = String(Math.abs(exponent)).padStart(2, '0')
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${size}`
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0')
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`
}

/** A number as Python prints it after reading `lexeme`: integers of any size stay, anything else is a double. */
export const numberText = (lexeme: string): string => {
  if (/^-?[0-9]+$/.test(lexeme)) return lexeme === '-0' ? '0' : lexeme
  return floatText(Number(lexeme))
}

/** A JSON string as Python `json.dumps(…, ensure_ascii=False)` writes it, without the quotes. */
export const stringBody = (text: string): string =>
  // [^ -\uffff] is U+0000-001F; a lone surrogate stays, which JSON.stringify on the whole would escape
  text.replace(/["\\]|[^ -\uffff]/g, (char) => JSON.stringify(char).slice(1, -1))

interface Separators {
  readonly item: string
  readonly key: string
}

/** `separators=(",", ":")` */
export const COMPACT: Separators = { item: ',', key: ':' }
/** What `json.dumps` uses when nothing is asked for. */
export const SPACED: Separators = { item: ', ', key: ': ' }

/** Python `json.dumps(value, ensure_ascii=False)` with the given separators; entries keep their order. */
export const dumps = (value: JsonValue, separators: Separators): string => {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return `"${stringBody(value)}"`
  if (value instanceof JsonNumber) return numberText(value.lexeme)
  if (isList(value)) return `[${value.map((item) => dumps(item, separators)).join(separators.item)}]`
  const entries = [...value].map(([key, item]) => {
    return `"${stringBody(key)}"${separators.key}${dumps(item, separators)}`
  })
  return `{${entries.join(separators.item)}}`
}

const codePoints = (text: string): number[] => Array.from(text, (char) => char.codePointAt(0) as number)

const compareCodePoints = (a: readonly number[], b: readonly number[]): number => {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const difference = (a[i] as number) - (b[i] as number)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** The value with the entries of every object in code point order of their keys; lists keep their order. */
export const keySorted = (value: JsonValue): JsonValue => {
  if (isList(value)) return value.map(keySorted)
  if (!(value instanceof Map)) return value
  const entries = [...(value as JsonObject)].map(([key, item]) => ({ key, item, order: codePoints(key) }))
  entries.sort((a, b) => compareCodePoints(a.order, b.order))
  return new Map(entries.map(({ key, item }) => [key, keySorted(item)]))
}
