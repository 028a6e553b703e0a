import { TokenizerError } from './errors.js'

const COUNT = 256
const LONE_SURROGATE = /[\ud800-\udfff]/u

/** The special tokens of a vocabulary, whose ids follow its ranks. */
export interface Specials {
  /** Name to id, in id order. */
  readonly ids: ReadonlyMap<string, number>
  /** The ids flagged `special` in the configuration. */
  readonly flagged: ReadonlySet<number>
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const refuseConfig = (file: string, path: string, expected: string): never => {
  throw new TokenizerError('ERR_TOKENIZER_CONFIG', `${file}: expected ${path} to be ${expected}`, { file })
}

const readId = (key: string, base: number, file: string): number => {
  const id = /^(0|[1-9][0-9]{0,8})$/.test(key) ? Number(key) : -1
  if (id >= base && id < base + COUNT) return id
  throw new TokenizerError(
    'ERR_TOKENIZER_SPECIAL_ID',
    `${file}: expected the ids of added_tokens_decoder in ${base} .. ${base + COUNT - 1} (they follow the ` +
      `${base} ranks), found ${JSON.stringify(key)}; do the two files belong together?`,
    { file }
  )
}

const refuseRepeatedName = (names: readonly string[], base: number, file: string): never => {
  const second = names.findIndex((name, offset) => names.indexOf(name) < offset)
  const name = names[second]!
  throw new TokenizerError(
    'ERR_TOKENIZER_SPECIAL_NAME',
    `${file}: expected ${COUNT} different special names, found ${JSON.stringify(name)} for the ids ` +
      `${base + names.indexOf(name)} and ${base + second}`,
    { file, id: base + second }
  )
}

/** A name at the start of another one would make two readings of the same text. */
const refuseAmbiguousNames = (names: ReadonlyMap<string, number>, file: string): void => {
  const sorted = [...names.keys()].sort((a, b) => (a < b ? -1 : 1))
  for (let i = 1; i < sorted.length; i++) {
    const shorter = sorted[i - 1]!
    if (!sorted[i]!.startsWith(shorter)) continue
    throw new TokenizerError(
      'ERR_TOKENIZER_SPECIAL_NAME',
      `${file}: expected no special name to begin with another one, found ${JSON.stringify(sorted[i])} and ` +
        JSON.stringify(shorter),
      { file, id: names.get(sorted[i]!)! }
    )
  }
}

/** One entry of added_tokens_decoder. */
interface AddedToken {
  readonly content: string
  readonly special: boolean
}

const readAddedToken = (token: unknown, path: string, file: string): AddedToken => {
  if (!isObject(token)) return refuseConfig(file, path, 'an object')
  const { content, special } = token
  if (typeof content !== 'string' || content === '' || LONE_SURROGATE.test(content)) {
    return refuseConfig(file, `${path}.content`, 'a non-empty string without lone surrogates')
  }
  if (typeof special !== 'boolean') return refuseConfig(file, `${path}.special`, 'true or false')
  return { content, special }
}

/**
 * Reads the special tokens of a tokenizer_config.json: 256 ids from `base` (the number of ranks) on; those that
 * `added_tokens_decoder` does not name are `<|reserved_token_{id}|>`.
 * @throws ERR_TOKENIZER_CONFIG, ERR_TOKENIZER_SPECIAL_ID, ERR_TOKENIZER_SPECIAL_NAME
 */
export const readSpecials = (config: unknown, base: number, file: string): Specials => {
  const added = isObject(config) ? config.added_tokens_decoder : undefined
  if (!isObject(added)) return refuseConfig(file, 'added_tokens_decoder', 'an object of id to token')
  const names = Array.from({ length: COUNT }, (_, offset) => `<|reserved_token_${base + offset}|>`)
  const flagged = new Set<number>()
  for (const [key, value] of Object.entries(added)) {
    const id = readId(key, base, file)
    const token = readAddedToken(value, `added_tokens_decoder.${key}`, file)
    names[id - base] = token.content
    if (token.special) flagged.add(id)
  }
  const ids = new Map(names.map((name, offset) => [name, base + offset]))
  if (ids.size < COUNT) refuseRepeatedName(names, base, file)
  refuseAmbiguousNames(ids, file)
  return { ids, flagged }
}
