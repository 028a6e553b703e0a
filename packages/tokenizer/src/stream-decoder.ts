import type { TokenBytes } from './token-bytes.js'
import { unfinishedBytes } from './utf8.js'

/** Ids to text, one id at a time; the texts concatenated are what `decode` gives for all the ids. */
export interface StreamDecoder {
  /**
   * The text that this id completes, perhaps empty; at most 3 bytes of an unfinished character are held back.
   * @throws ERR_TOKENIZER_ID
   */
  push(id: number): string
  /** The text of the bytes held back (one U+FFFD, or nothing); the decoder is then as new. */
  flush(): string
}

/** Decodes UTF-8 with U+FFFD for each maximal ill-formed part; a leading U+FEFF is text. */
export const decodeUtf8 = (bytes: Uint8Array): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)

/** A decoder that gives nothing for the ids in `dropped`. */
export const createStreamDecoder = (tokens: TokenBytes, dropped: ReadonlySet<number>): StreamDecoder => {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let held = new Uint8Array(0)
  return {
    push(id) {
      const token = tokens.of(id)
      if (dropped.has(id)) return ''
      const bytes = new Uint8Array(held.length + token.length)
      bytes.set(held)
      bytes.set(token, held.length)
      const end = bytes.length - unfinishedBytes(bytes, bytes.length)
      held = bytes.slice(end)
      return decoder.decode(bytes.subarray(0, end))
    },
    flush() {
      const text = decoder.decode(held)
      held = new Uint8Array(0)
      return text
    }
  }
}
