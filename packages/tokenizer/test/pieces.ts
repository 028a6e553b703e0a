import { pieceEnd } from '../src/pretokenizer.js'
import { unicodeClasses } from '../src/unicode-classes.js'

const classes = unicodeClasses()

/** The pre-tokenizer's pieces of a text, as text. */
export const piecesOf = (text: string): string[] => {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const bytes = new TextEncoder().encode(text)
  const pieces: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const to = pieceEnd(classes, bytes, at, bytes.length)
    pieces.push(decoder.decode(bytes.subarray(at, to)))
    at = to
  }
  return pieces
}
