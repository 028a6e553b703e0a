import { CHUNK_UNITS, chunkEnd, cutEnd, UNCUT_UNITS, utf16Units } from './cuts.js'
import { PairMerge } from './pair-merge.js'
import { pieceEnd } from './pretokenizer.js'
import { SpecialScan } from './special-scan.js'
import { unicodeClasses } from './unicode-classes.js'
import { hashRange, NONE, type Vocabulary } from './vocabulary.js'

const isHighSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xd800

/** Text to ids: cuts, special names, pre-tokenizer pieces, pair merges. */
export class Encoder {
  readonly #vocabulary: Vocabulary
  readonly #merge: PairMerge
  readonly #specials: SpecialScan
  readonly #classes = unicodeClasses()
  readonly #utf8 = new TextEncoder() // gives U+FFFD for each lone surrogate
  #bytes = new Uint8Array(0) // UTF-8 of the chunk at hand

  constructor(vocabulary: Vocabulary, specialNames: ReadonlyMap<string, number>) {
    this.#vocabulary = vocabulary
    this.#merge = new PairMerge(vocabulary)
    this.#specials = new SpecialScan(specialNames)
  }

  encode(text: string, special: boolean): number[] {
    const ids: number[] = []
    if (text.length <= UNCUT_UNITS) {
      this.#appendText(this.#load(text), 0, special, ids)
      return ids
    }
    for (let from = 0; from < text.length; ) {
      let to = Math.min(text.length, from + CHUNK_UNITS)
      if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to--
      const length = this.#load(text.slice(from, to))
      const end = chunkEnd(this.#bytes, 0, length)
      for (let at = 0; at < end; ) {
        const cut = cutEnd(this.#bytes, at, end)
        this.#appendText(cut, at, special, ids)
        at = cut
      }
      from = end === length ? to : from + utf16Units(this.#bytes, end)
    }
    return ids
  }

  /** Puts the text's UTF-8 into the buffer; returns its length. */
  #load(text: string): number {
    if (this.#bytes.length < 3 * text.length) this.#bytes = new Uint8Array(3 * text.length)
    return this.#utf8.encodeInto(text, this.#bytes).written
  }

  #appendText(end: number, from: number, special: boolean, ids: number[]): void {
    if (!special) {
      this.#appendOrdinary(from, end, ids)
      return
    }
    const bytes = this.#bytes
    for (let at = from; at < end; ) {
      const name = this.#specials.next(bytes, at, end)
      this.#appendOrdinary(at, name, ids)
      const found = this.#specials.at(bytes, name, end)
      if (found === undefined) break
      ids.push(found.id)
      at = name + found.lengthBytes
    }
  }

  #appendOrdinary(from: number, end: number, ids: number[]): void {
    const bytes = this.#bytes
    const classes = this.#classes
    for (let at = from; at < end; ) {
      const to = pieceEnd(classes, bytes, at, end)
      this.#appendPiece(bytes, at, to, ids)
      at = to
    }
  }

  #appendPiece(bytes: Uint8Array, from: number, to: number, ids: number[]): void {
    const vocabulary = this.#vocabulary
    if (to - from <= vocabulary.longestBytes) {
      const id = vocabulary.find(bytes, from, to, hashRange(bytes, from, to))
      if (id !== NONE) {
        ids.push(id)
        return
      }
    }
    this.#merge.append(bytes, from, to, ids)
  }
}
