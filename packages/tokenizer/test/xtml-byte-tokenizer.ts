/** A vocabulary of the 256 bytes and the eight special tokens of the chat format, for tests of structure. */
const NAMES = [
  '<|open|>',
  '<|close|>',
  '<|sep|>',
  '<|end_of_msg|>',
  '<|media_begin|>',
  '<|media_content|>',
  '<|media_pad|>',
  '<|media_end|>'
]

export const byteTokenizer = () => {
  const specials: ReadonlyMap<string, number> = new Map(NAMES.map((name, i) => [name, 256 + i]))
  const encoder = new TextEncoder()
  return {
    specials,
    encode(text: string, options: { special?: boolean } = {}): number[] {
      const parts = options.special === true ? text.split(/(<\|[a-z_]+\|>)/) : [text]
      return parts.flatMap((part) => {
        const id = options.special === true ? specials.get(part) : undefined
        return id === undefined ? [...encoder.encode(part)] : [id]
      })
    },
    stream() {
      const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
      return {
        push(id: number): string {
          if (id >= 256) throw new RangeError(`no id ${id}`)
          return decoder.decode(Uint8Array.of(id), { stream: true })
        },
        flush: (): string => decoder.decode()
      }
    }
  }
}
