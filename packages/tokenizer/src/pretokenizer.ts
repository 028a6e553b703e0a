import { HAN, LETTER, LOWER, NUMBER, SPACE, UPPER } from './unicode-classes.js'

const LF = 0x0a
const CR = 0x0d
const BLANK = 0x20
const APOSTROPHE = 0x27
const LONG_S_LEAD = 0xc5 // U+017F is 0xC5 0xBF
const LONG_S_TRAIL = 0xbf
const WORD = LETTER | NUMBER | SPACE // none of these bits: punctuation, symbols, controls, marks, Han symbols
const WIDTH = 8 // the width is above the class bits
const ASCII_END = 0x80
const NO_MATCH = -1

/** Class bits of the character at `at` | its width in bytes << WIDTH. The bytes are well-formed UTF-8. */
const charAt = (classes: Uint8Array, bytes: Uint8Array, at: number): number => {
  const lead = bytes[at]!
  if (lead < 0x80) return classes[lead]! | (1 << WIDTH)
  const second = bytes[at + 1]! & 0x3f
  if (lead < 0xe0) return classes[((lead & 0x1f) << 6) | second]! | (2 << WIDTH)
  const third = bytes[at + 2]! & 0x3f
  if (lead < 0xf0) return classes[((lead & 0x0f) << 12) | (second << 6) | third]! | (3 << WIDTH)
  const fourth = bytes[at + 3]! & 0x3f
  return classes[((lead & 0x07) << 18) | (second << 12) | (third << 6) | fourth]! | (4 << WIDTH)
}

/** End of the maximal run of characters that have a bit of `mask`. */
const runOf = (classes: Uint8Array, bytes: Uint8Array, from: number, end: number, mask: number): number => {
  let at = from
  for (;;) {
    while (at < end && bytes[at]! < ASCII_END && (classes[bytes[at]!]! & mask) !== 0) at++
    if (at >= end || bytes[at]! < ASCII_END) return at
    const char = charAt(classes, bytes, at)
    if ((char & mask) === 0) return at
    at += char >> WIDTH
  }
}

/** `UP* LO+`, or else `UP+ LO*` when `either` is set: the end of the match at `from`, or NO_MATCH. */
const matchLetters = (
  classes: Uint8Array,
  bytes: Uint8Array,
  from: number,
  end: number,
  either: boolean
): number => {
  let at = from
  let lastLower = NO_MATCH // end of the last upper-run character that is lower as well
  while (at < end) {
    const char = charAt(classes, bytes, at)
    if ((char & UPPER) === 0) {
      if ((char & LOWER) !== 0) return runOf(classes, bytes, at + (char >> WIDTH), end, LOWER)
      break
    }
    at += char >> WIDTH
    if ((char & LOWER) !== 0) lastLower = at
  }
  if (lastLower !== NO_MATCH) return lastLower
  return either && at > from ? at : NO_MATCH
}

/** The end after an English contraction ('s 't 're 've 'm 'll 'd in either case) at `at`, or `at` itself. */
const skipContraction = (bytes: Uint8Array, at: number, end: number): number => {
  if (at + 1 >= end || bytes[at] !== APOSTROPHE) return at
  const first = bytes[at + 1]! | 0x20
  if (first === 0x73 || first === 0x74 || first === 0x6d || first === 0x64) return at + 2 // s t m d
  if (at + 2 >= end) return at
  if (bytes[at + 1] === LONG_S_LEAD && bytes[at + 2] === LONG_S_TRAIL) return at + 3
  const second = bytes[at + 2]! | 0x20
  if (second === 0x65) return first === 0x72 || first === 0x76 ? at + 3 : at // re ve
  return first === 0x6c && second === 0x6c ? at + 3 : at // ll
}

/** A word that begins at `from` with a character of the given bits, perhaps one that is no letter; or NO_MATCH. */
const matchWord = (
  classes: Uint8Array,
  bytes: Uint8Array,
  from: number,
  end: number,
  first: number
): number => {
  let to = NO_MATCH
  if ((first & LETTER) !== 0) {
    to = matchLetters(classes, bytes, from, end, true)
  } else {
    const mark = (first & UPPER) !== 0
    to = matchLetters(classes, bytes, from + (first >> WIDTH), end, !mark)
    if (to === NO_MATCH && mark) to = matchLetters(classes, bytes, from, end, true)
  }
  return to === NO_MATCH ? NO_MATCH : skipContraction(bytes, to, end)
}

const isUpper = (byte: number): boolean => byte >= 0x41 && byte <= 0x5a
const isLower = (byte: number): boolean => byte >= 0x61 && byte <= 0x7a
const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39

/** `matchWord` for words of ASCII only, the common case; NO_MATCH when it is for the others to say. */
const matchAsciiWord = (bytes: Uint8Array, from: number, end: number): number => {
  const lead = bytes[from]!
  if (isDigit(lead) || lead === LF || lead === CR || lead >= ASCII_END) return NO_MATCH
  const start = isUpper(lead) || isLower(lead) ? from : from + 1
  let at = start
  while (at < end && isUpper(bytes[at]!)) at++
  while (at < end && isLower(bytes[at]!)) at++
  if (at === start || (at < end && bytes[at]! >= ASCII_END)) return NO_MATCH
  return skipContraction(bytes, at, end)
}

/** The end of one to three digits at `from`. */
const matchNumber = (classes: Uint8Array, bytes: Uint8Array, from: number, end: number): number => {
  let at = from
  for (let digits = 0; digits < 3 && at < end; digits++) {
    const char = charAt(classes, bytes, at)
    if ((char & NUMBER) === 0) break
    at += char >> WIDTH
  }
  return at
}

/** The end of a punctuation run at `from`, with the line breaks that follow it. */
const matchPunctuation = (classes: Uint8Array, bytes: Uint8Array, from: number, end: number): number => {
  let at = from
  while (at < end) {
    const char = charAt(classes, bytes, at)
    if ((char & WORD) !== 0) break
    at += char >> WIDTH
  }
  while (at < end && (bytes[at] === LF || bytes[at] === CR)) at++
  return at
}

/** The end of white space at `from`: through its last line break; else all but the last character before a word. */
const matchSpace = (classes: Uint8Array, bytes: Uint8Array, from: number, end: number): number => {
  let at = from
  let last = from // where the last character of the run begins
  let afterBreak = from
  while (at < end) {
    const char = charAt(classes, bytes, at)
    if ((char & SPACE) === 0) break
    last = at
    if (bytes[at] === LF || bytes[at] === CR) afterBreak = at + 1
    at += char >> WIDTH
  }
  if (afterBreak > from) return afterBreak
  return at === end || last === from ? at : last
}

/**
 * The end of the pre-tokenizer's piece that begins at `from`: the leftmost-first match of the official pattern,
 * whose alternatives are tried here in its order.
 * classes: u8 [0x110000]. bytes: well-formed UTF-8; `from` and `end` are character boundaries, from < end.
 */
export const pieceEnd = (classes: Uint8Array, bytes: Uint8Array, from: number, end: number): number => {
  const ascii = matchAsciiWord(bytes, from, end)
  if (ascii !== NO_MATCH) return ascii
  const first = charAt(classes, bytes, from)
  const next = from + (first >> WIDTH)
  if ((first & HAN) !== 0) return runOf(classes, bytes, next, end, HAN)
  if ((first & NUMBER) !== 0) return matchNumber(classes, bytes, from, end)
  const lead = bytes[from]
  if (lead !== LF && lead !== CR) {
    const to = matchWord(classes, bytes, from, end, first)
    if (to !== NO_MATCH) return to
  }
  if ((first & WORD) === 0) return matchPunctuation(classes, bytes, next, end)
  if (lead === BLANK && next < end && (charAt(classes, bytes, next) & WORD) === 0) {
    return matchPunctuation(classes, bytes, next, end)
  }
  return matchSpace(classes, bytes, from, end)
}
