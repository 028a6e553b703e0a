const PICTURES = 0x2400
const DELETE = 0x7f

/** The text without what a terminal would obey: control characters but line feed and tab become visible signs. */
export const screenText = (text: string): string => text.replace(/[^\P{Cc}\n\t]/gu, sign)

const sign = (control: string): string => {
  const code = control.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(PICTURES + code)
  return code === DELETE ? '\u2421' : '\ufffd'
}
