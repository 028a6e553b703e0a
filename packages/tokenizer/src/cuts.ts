const RUN_CODE_POINTS = 25_000

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80

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

/** The last character boundary in (from, to) at which space and other characters meet; `from` when there is none. */
const lastFlip = (bytes: Uint8Array, from: number, to: number): number => {
  let later = -1
  let laterIsSpace = false
  for (let at = to - 1; at >= from; at--) {
    if (isContinuation(bytes[at]!)) continue
    const space = isPythonSpace(bytes, at)
    if (later >= 0 && space !== laterIsSpace) return later
    later = at
    laterIsSpace = space
  }
  return from
}

/** The end of the run at `from`, of space or of other characters, or where it exceeds 25,000 code points. */
const runEnd = (bytes: Uint8Array, from: number, end: number): number => {
  const space = isPythonSpace(bytes, from)
  let run = 0
  for (let at = from; at < end; at++) {
    if (isContinuation(bytes[at]!)) continue
    if (isPythonSpace(bytes, at) !== space || ++run > RUN_CODE_POINTS) return at
  }
  return end
}

/**
 * The end of the substring at `from` in which no run of space, nor of other characters, exceeds 25,000 code points.
 * A run that long has as many bytes, so that only the last change in each 25,000 bytes need be looked at.
 */
export const cutEnd = (bytes: Uint8Array, from: number, end: number): number => {
  let run = from // where a run begins
  while (end - run > RUN_CODE_POINTS) {
    const flip = lastFlip(bytes, run, run + RUN_CODE_POINTS)
    if (flip > run) {
      run = flip
      continue
    }
    const after = runEnd(bytes, run, end)
    if (after === end || isPythonSpace(bytes, after) === isPythonSpace(bytes, run)) return after
    run = after
  }
  return end
}
