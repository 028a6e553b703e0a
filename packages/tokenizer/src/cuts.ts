const CHUNK_CODE_POINTS = 400_000
const RUN_CODE_POINTS = 25_000

/** No text of at most so many UTF-16 units is cut. */
export const UNCUT_UNITS = RUN_CODE_POINTS

/** So many UTF-16 units hold a whole chunk. */
export const CHUNK_UNITS = 2 * CHUNK_CODE_POINTS

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80

/** The end of the chunk of 400,000 code points (or of the text) that begins at `from`. */
export const chunkEnd = (bytes: Uint8Array, from: number, end: number): number => {
  let codePoints = 0
  for (let at = from; at < end; at++) {
    if (!isContinuation(bytes[at]!) && ++codePoints > CHUNK_CODE_POINTS) return at
  }
  return end
}

/** Python's `str.isspace()` of the character at `at`: \s and also U+001C..U+001F. */
const isPythonSpace = (bytes: Uint8Array, at: number): boolean => {
  const lead = bytes[at]!
  if (lead < 0x80) return lead === 0x20 || (lead >= 0x09 && lead <= 0x0d) || (lead >= 0x1c && lead <= 0x1f)
  if (lead === 0xc2) return bytes[at + 1] === 0x85 || bytes[at + 1] === 0xa0
  if (lead < 0xe1 || lead > 0xe3) return false
  const codePoint = ((lead & 0x0f) << 12) | ((bytes[at + 1]! & 0x3f) << 6) | (bytes[at + 2]! & 0x3f)
  if (codePoint >= 0x2000 && codePoint <= 0x200a) return true
  return (
    codePoint === 0x1680 ||
    codePoint === 0x2028 ||
    codePoint === 0x2029 ||
    codePoint === 0x202f ||
    codePoint === 0x205f ||
    codePoint === 0x3000
  )
}

/** The end of the substring at `from` in which no run of space, nor of other characters, exceeds 25,000. */
export const cutEnd = (bytes: Uint8Array, from: number, end: number): number => {
  let run = 0
  let runIsSpace = false
  for (let at = from; at < end; at++) {
    if (isContinuation(bytes[at]!)) continue
    const space = isPythonSpace(bytes, at)
    if (space !== runIsSpace) {
      run = 0
      runIsSpace = space
    }
    if (++run > RUN_CODE_POINTS) return at
  }
  return end
}

/** How many UTF-16 units the text `bytes[0 .. end)` has. */
export const utf16Units = (bytes: Uint8Array, end: number): number => {
  let units = 0
  for (let at = 0; at < end; at++) {
    if (!isContinuation(bytes[at]!)) units += bytes[at]! < 0xf0 ? 1 : 2
  }
  return units
}
