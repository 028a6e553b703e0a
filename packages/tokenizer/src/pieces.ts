import { pieceEnd } from './pretokenizer.js'
import { unicodeClasses } from './unicode-classes.js'

/** The pre-tokenizer's pieces of a whole text, as text; a lone surrogate counts as U+FFFD. */
export const piecesOf = (text: string): string[] => {
  const classes = unicodeClasses()
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
