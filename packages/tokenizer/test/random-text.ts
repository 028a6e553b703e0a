/** A seeded generator of uniform numbers in [0, 1): 32-bit xorshift. */
export const seeded = (seed: number): (() => number) => {
  let state = seed | 0 || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}

type Random = () => number

const below = (random: Random, n: number): number => Math.floor(random() * n)
const pick = <T>(random: Random, from: readonly T[]): T => from[below(random, from.length)]!
const between = (random: Random, low: number, high: number): string =>
  String.fromCodePoint(low + below(random, high - low + 1))

const WORDS =
  'the of and Model tokenizer HTMLParser camelCase newlines import return naïve Straße ΑΒΓ привет'.split(' ')
const CONTRACTIONS = ["'s", "'T", "'re", "'VE", "'m", "'Ll", "'d", "'ſ", '’s', "'x", "'"]
const PUNCTUATION = [
  '!',
  '?!',
  '...',
  '--',
  '/*',
  '{}',
  '("',
  '#',
  '\u3001',
  '。',
  '、\n',
  '€',
  '\u2e80',
  '|>',
  '<|'
]
// biome-ignore format: one list
const SPACES = [
  ' ', '  ', '\t', '\n', '\r\n', '\r', '\n\n', ' \n ', '\v', '\f', '\x1c', '\x1f', '\x85', '\xa0', '\u1680',
  '\u2003', '\u2028', '\u202f', '\u3000', '\ufeff', '\u200b'
]
// biome-ignore format: one list
const NAMES = [
  '<|open|>', '<|close|>', '<|sep|>', '<|end_of_msg|>', '[BOS]', '[EOS]', '[UNK', '<|reserved_token_163700|>',
  '<|reserved_token_163586|>', '<|reserved_token_', '<|im_end|>', '<osagent_mode>', '<|<|open|>'
]

const PARTS: readonly ((random: Random) => string)[] = [
  (random) => pick(random, WORDS),
  (random) => pick(random, CONTRACTIONS),
  (random) => pick(random, PUNCTUATION),
  (random) => pick(random, SPACES),
  (random) => pick(random, SPACES),
  (random) => pick(random, NAMES),
  (random) => between(random, 0x00, 0x7f),
  (random) => between(random, 0x61, 0x7a).repeat(1 + below(random, 5)),
  (random) => between(random, 0x41, 0x5a),
  (random) => String(below(random, 10 ** (1 + below(random, 8)))),
  (random) => pick(random, ['٣', '０１２３', '①', '〇', 'Ⅷ', '१२']),
  (random) => between(random, 0x4e00, 0x4fff) + between(random, 0x4e00, 0x9fff),
  (random) => pick(random, ['中文', '測試', '々', '〆', '㐀', '𠀀', '漢字']),
  (random) => between(random, 0x3041, 0x30ff),
  (random) => between(random, 0xac00, 0xd7a3),
  (random) => between(random, 0x0400, 0x04ff),
  (random) => between(random, 0x0590, 0x06ff),
  (random) => between(random, 0x0900, 0x0dff),
  (random) => between(random, 0x0300, 0x036f),
  (random) => between(random, 0x00a0, 0x024f),
  (random) => between(random, 0x1f300, 0x1faff),
  (random) => pick(random, ['👩‍👩‍👧', '🇩🇪', '❤️', '\u200d']),
  (random) => between(random, 0x2000, 0x2fff),
  (random) => between(random, 0xd800, 0xdfff),
  (random) => between(random, 0xe000, 0xffff),
  (random) => between(random, 0x10000, 0x3ffff),
  (random) => between(random, 0, 0x10ffff)
]

/** A short text of mixed scripts, white space, marks, text like special names, and lone surrogates. */
export const randomText = (random: Random): string => {
  const kinds = 1 + below(random, 4)
  const parts = Array.from({ length: kinds }, () => pick(random, PARTS))
  const length = 1 + below(random, 14)
  let text = ''
  for (let i = 0; i < length; i++) text += pick(random, random() < 0.8 ? parts : PARTS)(random)
  return text
}
