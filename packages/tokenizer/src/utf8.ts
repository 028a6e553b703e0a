/** How many bytes a well-formed character with this lead byte has; 0 when no character begins so. */
const charBytes = (lead: number): number => {
  if (lead < 0x80) return 1
  if (lead < 0xc2 || lead > 0xf4) return 0
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
}

/** Whether `second` may follow `lead`: overlong forms, surrogates and beyond U+10FFFF are ill-formed (Unicode 3.9). */
const mayFollow = (lead: number, second: number): boolean => {
  const from = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80
  const to = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf
  return second >= from && second <= to
}

/** The number of bytes, at most 3, at the end of `bytes[0 .. end)` that further bytes could make a character. */
export const unfinishedBytes = (bytes: Uint8Array, end: number): number => {
  for (let back = 1; back <= 3 && back <= end; back++) {
    const byte = bytes[end - back]!
    if ((byte & 0xc0) === 0x80) continue
    const more = charBytes(byte) > back
    return more && (back === 1 || mayFollow(byte, bytes[end - back + 1]!)) ? back : 0
  }
  return 0
}
