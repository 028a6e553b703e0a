import { Chunk } from './chunk.js'
import { cutEnd } from './cuts.js'
import { PairMerge } from './pair-merge.js'
import { PieceCache } from './piece-cache.js'
import { pieceEnd } from './pretokenizer.js'
import { Seams } from './seams.js'
import { SpecialScan } from './special-scan.js'
import { unicodeClasses } from './unicode-classes.js'
import { NONE, type Vocabulary } from './vocabulary.js'

/** Text to ids: chunks, cuts, special names, pre-tokenizer pieces, pair merges. */
export class Encoder {
  readonly #vocabulary: Vocabulary
  readonly #merge: PairMerge
  readonly #seams: Seams
  readonly #cache = new PieceCache()
  readonly #specials: SpecialScan
  readonly #classes = unicodeClasses()
  readonly #chunk = new Chunk()

  constructor(vocabulary: Vocabulary, specialNames: ReadonlyMap<string, number>) {
    this.#vocabulary = vocabulary
    this.#merge = new PairMerge(vocabulary)
    this.#seams = new Seams(vocabulary)
    this.#specials = new SpecialScan(specialNames)
  }

  encode(text: string, special: boolean): number[] {
    const chunk = this.#chunk
    const ids: number[] = []
    for (let unit = 0; unit < text.length; ) {
      unit = chunk.load(text, unit)
      for (let at = 0; at < chunk.lengthBytes; ) {
        const cut = cutEnd(chunk.bytes, at, chunk.lengthBytes)
        if (special) this.#appendWithSpecials(chunk.bytes, at, cut, ids)
        else this.#appendOrdinary(chunk.bytes, at, cut, ids)
        at = cut
      }
    }
    return ids
  }

  #appendWithSpecials(bytes: Uint8Array, from: number, end: number, ids: number[]): void {
    for (let at = from; at < end; ) {
      const name = this.#specials.next(bytes, at, end)
      this.#appendOrdinary(bytes, at, name, ids)
      const found = this.#specials.at(bytes, name, end)
      if (found === undefined) break
      ids.push(found.id)
      at = name + found.lengthBytes
    }
  }

  #appendOrdinary(bytes: Uint8Array, from: number, end: number, ids: number[]): void {
    const classes = this.#classes
    const cache = this.#cache
    const view = this.#chunk.view
    for (let at = from; at < end; ) {
      const to = pieceEnd(classes, bytes, at, end)
      if (!cache.append(view, at, to - at, ids)) {
        const first = ids.length
        this.#appendPiece(bytes, at, to, ids)
        cache.keep(view, at, to - at, ids, first)
      }
      at = to
    }
  }

  /** A piece that is a token is that token; else it is encoded between its seams. */
  #appendPiece(bytes: Uint8Array, from: number, to: number, ids: number[]): void {
    const id = this.#vocabulary.idOf(bytes, from, to)
    if (id !== NONE) {
      ids.push(id)
      return
    }
    for (let at = from; at < to; ) {
      const seam = this.#seams.next(bytes, at, to)
      if (at === from && seam === to) this.#merge.append(bytes, from, to, ids)
      else this.#appendSegment(bytes, at, seam, ids)
      at = seam
    }
  }

  /** Part of a piece: a token that merging does not reach is none here, though it is one as a whole piece. */
  #appendSegment(bytes: Uint8Array, from: number, to: number, ids: number[]): void {
    const id = this.#vocabulary.idOf(bytes, from, to)
    if (id !== NONE) {
      if (this.#merge.reaches(id)) ids.push(id)
      else this.#merge.append(bytes, from, to, ids)
      return
    }
    const view = this.#chunk.view
    if (this.#cache.append(view, from, to - from, ids)) return
    const first = ids.length
    this.#merge.append(bytes, from, to, ids)
    this.#cache.keep(view, from, to - from, ids, first)
  }
}
