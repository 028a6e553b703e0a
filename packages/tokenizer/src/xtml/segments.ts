import { XtmlError } from './errors.js'

/** Text that is encoded on its own, and whether the names of special tokens in it become their ids. */
export type Segment = readonly [text: string, special: boolean]

/** What encoding asks of a tokenizer. */
export interface SegmentEncoder {
  encode(text: string, options?: { special?: boolean }): ArrayLike<number>
}

export const OPEN = '<|open|>'
export const CLOSE = '<|close|>'
export const SEP = '<|sep|>'
export const END_OF_MESSAGE = '<|end_of_msg|>'

export type Attribute = readonly [name: string, value: string]

const escapeAttribute = (value: string): string => value.replaceAll('&', '&amp;').replaceAll('"', '&quot;')

/** The inverse of attribute escaping; `&quot;` first, so that `&amp;quot;` comes back as `&quot;`. */
export const unescapeAttribute = (value: string): string =>
  value.replaceAll('&quot;', '"').replaceAll('&amp;', '&')

/** An ordered list of segments under construction; empty texts leave no trace. */
export class SegmentList {
  readonly segments: Segment[] = []

  /** Ordinary text: whatever it spells, it never becomes a marker. */
  text(text: string): void {
    if (text !== '') this.segments.push([text, false])
  }

  /** A marker or an image block. */
  special(text: string): void {
    this.segments.push([text, true])
  }

  open(tag: string, attributes: readonly Attribute[] = []): void {
    this.special(OPEN)
    this.text(tag)
    for (const [name, value] of attributes) {
      this.text(` ${name}`)
      this.text('="')
      this.text(escapeAttribute(value))
      this.text('"')
    }
    this.special(SEP)
  }

  close(tag: string): void {
    this.special(CLOSE)
    this.text(tag)
    this.special(SEP)
  }

  endMessage(): void {
    this.close('message')
    this.special(END_OF_MESSAGE)
  }
}

const NAMES = /<\|(?:open|close|sep|end_of_msg|media_begin|media_content|media_pad|media_end)\|>/g

/**
 * Ids of rendered segments: each is encoded alone and the ids are concatenated, because the split changes them.
 * @throws ERR_XTML_MARKER when the vocabulary has no single id for a marker of a special segment
 */
export const encodeSegments = (segments: readonly Segment[], tokenizer: SegmentEncoder): number[] => {
  const known = new Set<string>()
  const ids: number[] = []
  for (const [text, special] of segments) {
    const encoded = tokenizer.encode(text, { special })
    if (special) requireMarkers(text, tokenizer, known)
    for (let i = 0; i < encoded.length; i++) ids.push(encoded[i] as number)
  }
  return ids
}

const requireMarkers = (text: string, tokenizer: SegmentEncoder, known: Set<string>): void => {
  for (const [name] of text.matchAll(NAMES)) {
    if (known.has(name)) continue
    if (tokenizer.encode(name, { special: true }).length !== 1) {
      const problem = `the vocabulary has no single id for it; load the tokenizer_config.json of the checkpoint`
      throw new XtmlError('ERR_XTML_MARKER', name, problem)
    }
    known.add(name)
  }
}
