import type { Tokenizer } from '@k3/tokenizer'
import { encodeSegments } from '@k3/tokenizer/xtml'

type Piece = readonly [text: string, special: boolean]

const plain = (text: string): Piece => [text, false]
const marker = (name: string): Piece => [`<|${name}|>`, true]
const escaped = (value: string): string => value.replaceAll('&', '&amp;').replaceAll('"', '&quot;')

/** Headers of XTML as ids, each segment encoded alone as in prompts. Source: XTML.md §1 */
export class Markup {
  readonly #tokenizer: Tokenizer

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer
  }

  open(tag: string, attributes: readonly (readonly [name: string, value: string])[] = []): readonly number[] {
    const pieces = attributes.flatMap(([name, value]) => [
      plain(` ${name}`),
      plain('="'),
      plain(escaped(value)),
      plain('"')
    ])
    return this.#ids([marker('open'), plain(tag), ...pieces, marker('sep')])
  }

  close(tag: string): readonly number[] {
    return this.#ids([marker('close'), plain(tag), marker('sep')])
  }

  /** The end of a message with the end token. */
  get end(): readonly number[] {
    return [...this.close('message'), ...this.#ids([marker('end_of_msg')])]
  }

  /** The ids of the four markers. */
  get markers(): readonly number[] {
    return this.#ids([marker('open'), marker('close'), marker('sep'), marker('end_of_msg')])
  }

  #ids(pieces: readonly Piece[]): readonly number[] {
    return encodeSegments(
      pieces.filter(([text]) => text !== ''),
      this.#tokenizer
    )
  }
}
